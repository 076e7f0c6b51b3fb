/* The functions of modular.cuh under names that a test can look up. */
#include "modular.cuh"

u64 t_f64_load(u64 x) { return fh_to_bits(f64_load(x)); }
double t_f64_reduce(double x, double p, double inv_p) { return f64_reduce(x, p, inv_p); }
u64 t_f64_store(double x, double p, double inv_p) { return f64_store(x, p, inv_p); }
u64 t_f64_store_near(double x, double p) { return f64_store_near(x, p); }
double t_f64_center(double x, double p) { return f64_center(x, p); }
double t_f64_mul(double x, double w, double p, double inv_p) { return f64_mul(x, w, p, inv_p); }
double t_f64_sum(const double* x, const double* w, u64 count, double first, double p, double inv_p) {
    double hi = FH_SUM_BASE, lo = first;
    for (u64 i = 0; i < count; ++i) f64_sum_add(&hi, &lo, x[i], w[i]);
    return f64_sum_reduce(hi, lo, p, inv_p);
}
u64 t_f64_sum_terms(void) { return FH_SUM_TERMS; }
u64 t_u64_add(u64 a, u64 b, u64 p) { return u64_add(a, b, p); }
u64 t_u64_sub(u64 a, u64 b, u64 p) { return u64_sub(a, b, p); }
u64 t_u64_mul_shoup_lazy(u64 x, u64 w, u64 s, u64 p) { return u64_mul_shoup_lazy(x, w, s, p); }
u64 t_u64_mul_shoup(u64 x, u64 w, u64 s, u64 p) { return u64_mul_shoup(x, w, s, p); }
u64 t_u64_reduce(u64 x, u64 p, u64 ratio_hi) { return u64_reduce(x, p, ratio_hi); }
u64 t_u64_mul(u64 a, u64 b, u64 p, u64 lo, u64 hi) { return u64_mul(a, b, p, lo, hi); }
u64 t_u64_recenter(u64 x, u64 q, u64 p, u64 hi) { return u64_recenter(x, q, p, hi); }
u64 t_u64_sum(const u64* a, const u64* b, u64 count, u64 p, u64 ratio_lo, u64 ratio_hi) {
    u64 lo = 0, hi = 0;
    for (u64 i = 0; i < count; ++i) u64_sum_add(&lo, &hi, a[i], b[i]);
    return u64_reduce_wide(lo, hi, p, ratio_lo, ratio_hi);
}
