"""Writes tensor.json: operations of the tensor dialect with numpy's results.

    pip install numpy mpmath
    python tensor.py

An operand is {"dtype", "shape", "strides", "offset"} over a buffer, which is either "bytes" (hex,
little-endian) or "sequence" (a seed; see `sequence`). Strides and offset count elements; row-major
strides and offset 0 are left out. A result is bytes, or an exception. "ulp" is how far an element
may be from numpy's (0: no bit differs, but for NaNs), "absolute" the same as an absolute error.
"""

import json
import pathlib

import mpmath
import numpy as np

NAMES = {
    "bool": np.bool_,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
DTYPES = {np.dtype(value): key for key, value in NAMES.items()}
MASK = (1 << 64) - 1

EDGES = {
    "bool": [False, True],
    "i32": [0, 1, -1, 7, 100000, 2**31 - 1, -(2**31)],
    "i64": [0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63)],
    "f32": [0.0, -0.0, 1.0, -2.5, 3.0e38, 1e-45, np.inf, -np.inf, np.nan],
    "f64": [0.0, -0.0, 1.0, -2.5, 1.7e308, 5e-324, np.inf, -np.inf, np.nan],
    "c64": [
        0,
        complex(-0.0, 0.0),
        1 + 2j,
        -2.5 + 0.5j,
        3e38j,
        complex(np.inf, 1),
        complex(1, np.nan),
    ],
    "c128": [
        0,
        complex(-0.0, 0.0),
        1 + 2j,
        -2.5 + 0.5j,
        1e308j,
        complex(np.inf, 1),
        complex(1, np.nan),
    ],
}


def sequence(seed, length, dtype):
    """Elements that the test makes alike: from a hash of the position, without rounding."""
    position = np.arange(length, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits = (position + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(32)
        bits *= np.uint64(0xD6E8FEB86659FD93)
        bits ^= bits >> np.uint64(32)
    if dtype == "bool":
        return (bits & np.uint64(1)).astype(bool)
    if dtype == "i32":
        return (bits >> np.uint64(32)).astype(np.uint32).view(np.int32)
    if dtype == "i64":
        return bits.view(np.int64)
    if dtype in ("c64", "c128"):
        part = "f32" if dtype == "c64" else "f64"
        return sequence(seed, 2 * length, part).view(NAMES[dtype])
    # A signed fraction of 24 or 53 bits times 2^-3 to 2^4.
    exponent = (bits & np.uint64(7)).astype(np.float64) - 3.0
    digits = 24 if dtype == "f32" else 53
    fraction = (bits >> np.uint64(64 - digits)).astype(np.float64) * 2.0**-digits - 0.5
    return (fraction * np.exp2(exponent)).astype(NAMES[dtype])


class Operand:
    """A numpy view and how the test makes it again."""

    def __init__(self, view, source, base):
        self.view = view
        item = view.itemsize
        start = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        self.json = {
            "dtype": DTYPES[view.dtype],
            "shape": list(view.shape),
            **source,
        }
        if not view.flags.c_contiguous or (start and view.size):
            self.json["strides"] = [stride // item for stride in view.strides]
            self.json["offset"] = start // item if view.size else 0


def raw(values, dtype=None, layout=lambda array: array):
    base = np.array(values, dtype=NAMES[dtype] if dtype else None)
    return Operand(layout(base), {"bytes": base.tobytes().hex()}, base)


def made(dtype, shape, layout=lambda array: array, seed=0):
    length = int(np.prod(shape))
    base = sequence(seed, length, dtype)
    source = {"sequence": seed, "length": length}
    return Operand(layout(base.reshape(shape)), source, base)


CASES = []


def case(operation, operands, function, attributes=None, *, ulp=0, absolute=None, layout=False):
    entry = {
        "operation": f"tensor.{operation}",
        "operands": [operand.json for operand in operands],
    }
    if attributes:
        entry["attributes"] = attributes
    try:
        with np.errstate(all="ignore"):
            result = function(*(operand.view for operand in operands))
    except (TypeError, ValueError, IndexError) as error:
        entry["refused"] = str(error).splitlines()[0]
        CASES.append(entry)
        return
    result = np.asarray(result)
    entry["result"] = {
        "dtype": DTYPES[result.dtype],
        "shape": list(result.shape),
        "bytes": np.ascontiguousarray(result).tobytes().hex(),
    }
    if layout:
        entry["result"]["strides"] = [stride // result.itemsize for stride in result.strides]
    if ulp:
        entry["ulp"] = ulp
    if absolute is not None:
        entry["absolute"] = absolute
    CASES.append(entry)


def transposed(array):
    return array.T


def reversed_rows(array):
    return array[::-1]


def every_second(array):
    return array[..., ::2]


def middle_first(array):
    return np.moveaxis(array, 1, 0)


def arithmetic():
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide}
    for name, function in functions.items():
        for left in NAMES:
            for right in NAMES:
                # Every edge value meets every other of its type, and some of the other types.
                x = raw(EDGES[left], left, lambda array: array[:, None])
                y = raw(EDGES[right] if left == right else EDGES[right][-3:], right)
                case(name, [x, y], function)
        for dtype in ("f64", "c128", "c64"):
            for layouts in [
                (transposed, transposed),
                (transposed, lambda array: array.T.copy()),
                (reversed_rows, every_second),
            ]:
                shapes = [(6, 4), (6, 4)] if layouts[1] is not every_second else [(4, 6), (4, 12)]
                operands = [
                    made(dtype, shape, layout, seed)
                    for seed, (shape, layout) in enumerate(zip(shapes, layouts, strict=False))
                    if layout in (transposed, reversed_rows, every_second)
                ]
                if len(operands) == 1:
                    operands.append(made(dtype, (4, 6), seed=9))
                case(name, operands, function, layout=True)
        case(
            name,
            [made("f64", (2, 3, 4), middle_first), made("f64", (4,), seed=3)],
            function,
            layout=True,
        )
        case(name, [made("f64", (3, 1, 2)), made("f64", (4, 1), seed=2)], function)
        case(name, [made("f64", (0, 3)), made("f64", (1,))], function)
        case(name, [made("f64", (2, 3)), made("f64", (4,))], function)
        case(name, [made("c128", (5,)), raw(2.5 - 1j, "c128")], function)
        case(name, [raw(3.0, "f64"), made("f32", (5,))], function)


def powers():
    for base in ("i32", "i64"):
        for exponent in ("i32", "i64"):
            x = raw(EDGES[base], base, lambda array: array[:, None])
            case("pow", [x, raw([0, 1, 2, 3, 31, 64, 2**31 - 1], exponent)], np.power)
    case("pow", [raw([1, 2], "i64"), raw([2, -1], "i64")], np.power)
    case("pow", [raw([True], "bool"), raw([3], "i64")], np.power)
    for base in ("f32", "f64"):
        for exponent in ("f32", "f64"):
            values = EDGES[exponent] + [2.0, 0.5, -1.0, 3.0, -3.0, 1 / 3]
            x = raw(EDGES[base] + [0.75, -1.0], base, lambda array: array[:, None])
            case("pow", [x, raw(values, exponent)], np.power, ulp=1)
    for exponent in (2.0, -1.0, 0.5, 3.0):
        for dtype in ("f32", "f64"):
            x = raw(EDGES[dtype] + [1.1, 0.3, -7.3], dtype)
            case("pow", [x, raw(exponent, dtype)], np.power, ulp=0 if exponent != 3.0 else 1)
    for dtype in ("c64", "c128"):
        finite = [1 + 2j, -2.5 + 0.5j, 0.3 - 0.7j, 0, 1j, -1]
        x = raw(finite, dtype, lambda array: array[:, None])
        case("pow", [x, raw([0, 1, 2, 3, 4, 7, 31, -1, -2, -5], dtype)], np.power)
        case("pow", [raw(finite, dtype), raw(2, dtype)], lambda x, _: x**2)
        case("pow", [raw(finite, dtype), raw(-1, dtype)], lambda x, _: x**-1)
        # glibc takes the exponential of a product, which magnifies the error of its logarithm.
        for exponent in (0.25, 1.5 - 0.5j, -2j, 3 + 1e-3j):
            case(
                "pow",
                [x, raw([exponent], dtype)],
                np.power,
                absolute=5e-4 if dtype == "c64" else 1e-14,
            )


def functions():
    for dtype in NAMES:
        edges = raw(EDGES[dtype], dtype)
        if dtype != "bool":
            case("neg", [edges], np.negative)
        case("abs", [edges], np.abs)
        case("real", [edges], np.real)
        case("imag", [edges], np.imag)
        if dtype != "bool":
            case("conj", [edges], np.conj)
    case("neg", [raw(EDGES["bool"], "bool")], np.negative)
    for dtype in ("c64", "c128"):
        case("abs", [made(dtype, (300,))], np.abs)
        case("abs", [made(dtype, (7, 8), transposed)], np.abs, layout=True)
    real = {
        "exp": np.exp,
        "log": np.log,
        "sqrt": np.sqrt,
        "sin": np.sin,
        "cos": np.cos,
        "tanh": np.tanh,
    }
    for name, function in real.items():
        for dtype in ("i32", "i64"):
            case(name, [raw([0, 1, 2, 5, 40], dtype)], function, ulp=0 if name == "sqrt" else 1)
        for dtype in ("f32", "f64"):
            ulp = {"sqrt": 0}.get(name, 4 if dtype == "f32" else 1)
            x = raw(EDGES[dtype] + [0.5, 2.0, 30.0, -30.0, 1e-8, 700.0, -745.0, 1e5], dtype)
            case(name, [x], function, ulp=ulp)
        for dtype in ("c64", "c128"):
            parts = [0.0, -0.0, 0.7, -1.3, 20.0, -25.0, np.inf, -np.inf, np.nan]
            if dtype == "c128":
                parts += [1e-300, 711.0, 1e300]
            x = raw([complex(re, im) for re in parts for im in parts], dtype)
            case(name, [x], function, ulp=2)
    case(
        "log",
        [raw([complex(np.cos(t), np.sin(t)) for t in np.linspace(0.1, 3, 40)], "c128")],
        np.log,
        ulp=2,
    )


def correctly_rounded():
    """Real functions against the true values, not numpy's."""
    mpmath.mp.prec = 300
    arguments = {
        "exp": lambda x: 40 * x,
        "log": lambda x: abs(x) + 1e-3,
        "sin": lambda x: 50 * x,
        "cos": lambda x: 50 * x,
        "tanh": lambda x: 3 * x,
    }
    for name, argument in arguments.items():
        for dtype in ("f32", "f64"):
            x = raw(argument(sequence(77, 120, dtype)), dtype)
            function = getattr(mpmath, name)
            digits = 24 if dtype == "f32" else 53

            def nearest(value):
                mantissa = mpmath.mpf(value)
                with mpmath.workprec(digits):
                    return float(+mantissa)

            truth = [nearest(function(mpmath.mpf(float(value)))) for value in x.view]
            case(name, [x], lambda _: np.array(truth, dtype=NAMES[dtype]))
    base, exponent = abs(sequence(78, 120, "f64")), 9 * sequence(79, 120, "f64")
    truth = [
        float(mpmath.mpf(float(b)) ** mpmath.mpf(float(e)))
        for b, e in zip(base, exponent, strict=False)
    ]
    case("pow", [raw(base), raw(exponent)], lambda *_: np.array(truth), ulp=1)


def selection():
    for dtype in ("bool", "i32", "i64", "f32", "f64"):
        x = raw(EDGES[dtype], dtype, lambda array: array[:, None, None])
        low = raw(EDGES[dtype][:4], dtype, lambda array: array[:, None])
        case("clip", [x, low, raw(EDGES[dtype], dtype)], np.clip)
    case("clip", [made("i32", (4,)), raw(0.5, "f32"), raw(3, "i64")], np.clip)
    for left in NAMES:
        for right in NAMES:
            x = raw(EDGES[left], left, lambda array: array[:, None])
            mask = raw([True, False], "bool", lambda array: array[:, None, None])
            case("where", [mask, x, raw(EDGES[right][-2:], right)], np.where)
    case("where", [made("bool", (3,)), made("f64", (2,)), made("f64", (3,))], np.where)


def conversions():
    for source in NAMES:
        for target in NAMES:
            if source in ("c64", "c128") and target not in ("c64", "c128"):
                continue
            values = EDGES[source]
            if source in ("f32", "f64"):
                values = [*values, 2.7, -2.7, 2147483647.5, -2147483648.5, 4000000000.0, 9.3e18]
            case(
                "cast",
                [raw(values, source)],
                lambda x: x.astype(NAMES[target]),
                {"dtype": {"dtype": target}},
            )


def movement():
    for dtype in ("f64", "bool", "c64"):
        x = made(dtype, (3, 4, 5), middle_first)
        for shift, axis in [(1, 0), (-2, 1), (7, -1), (0, 2), (10**12 + 1, 2), (4, None)]:
            attributes = {"shift": shift} | ({} if axis is None else {"axis": axis})
            case(
                "roll", [x], lambda x: np.roll(x, shift, axis), attributes, layout=axis is not None
            )
    case("roll", [made("f64", (0,))], lambda x: np.roll(x, 3, 0), {"shift": 3, "axis": 0})
    case("roll", [made("f64", (2,))], lambda x: np.roll(x, 3, 1), {"shift": 3, "axis": 1})
    x = made("f64", (4, 6), transposed)
    for shape in [(24,), (2, -1), (3, 2, 4), (-1, 1), (5, -1), (-1, -1), (7,)]:
        case("reshape", [x], lambda x: x.reshape(shape), {"shape": list(shape)})
    case("reshape", [made("f64", (0, 3))], lambda x: x.reshape(3, 0), {"shape": [3, 0]})
    x = made("f64", (2, 3, 4))
    case("transpose", [x], lambda x: x.T, layout=True)
    for axes in [(1, 0, 2), (-1, 0, 1), (0, 1), (0, 0, 1), (0, 1, 3)]:
        case("transpose", [x], lambda x: x.transpose(axes), {"axes": list(axes)}, layout=True)
    for shape in [(2, 3, 4), (5, 2, 3, 4), (3, 4), (2, 3, 5)]:
        case("broadcast", [x], lambda x: np.broadcast_to(x, shape), {"shape": list(shape)})
    case("broadcast", [raw(1.5, "f32")], lambda x: np.broadcast_to(x, (2, 2)), {"shape": [2, 2]})

    def sliced(starts, sizes, steps, dropped=()):
        def function(array):
            places = [
                start + step * np.arange(size)
                for start, size, step in zip(starts, sizes, steps, strict=False)
            ]
            return array[np.ix_(*places)].squeeze(tuple(dropped))

        attributes = {"starts": starts, "sizes": sizes, "steps": steps, "dropped": list(dropped)}
        return function, attributes

    y = made("f64", (5, 8), seed=4)
    for arguments in [
        ([0, 0], [5, 8], [1, 1]),
        ([4, 1], [5, 3], [-1, 3]),
        ([4, 7], [2, 4], [-2, -2]),
        ([2, 3], [1, 4], [1, 1], [0]),
        ([1, 5], [1, 1], [1, -1], [0, 1]),
        ([5, 0], [0, 2], [1, 1]),
        ([0, 9], [3, 0], [2, -1]),
    ]:
        function, attributes = sliced(*arguments)
        case("slice", [y], function, attributes)
    for axis, place in [(0, 0), (1, -1), (-1, 3), (0, 5), (2, 0)]:
        case("index", [y], lambda y: np.take(y, place, axis), {"axis": axis, "index": place})
    z = made("i32", (5, 8), seed=6)
    for axis in (0, 1, 2, -1, 3):
        case("stack", [y, z], lambda *a: np.stack(a, axis), {"axis": axis})
    for axis in (0, 1, -2, 2):
        case(
            "concatenate",
            [y, z, made("f32", (5, 8))],
            lambda *a: np.concatenate(a, axis),
            {"axis": axis},
        )
    case("concatenate", [y, made("f64", (2, 8))], lambda *a: np.concatenate(a, 0), {"axis": 0})
    case("concatenate", [y, made("f64", (2, 8))], lambda *a: np.concatenate(a, 1), {"axis": 1})
    case("stack", [y, made("f64", (2, 8))], lambda *a: np.stack(a, 0), {"axis": 0})


def reductions():
    layouts = [lambda a: a, transposed, reversed_rows, every_second, middle_first]
    for name, function in {"sum": np.sum, "mean": np.mean}.items():
        for dtype in NAMES:
            for length in (0, 1, 3, 7, 8, 9, 15, 64, 65, 127, 128, 129, 136, 1000, 8192, 100003):
                if (length > 200 and dtype in ("bool", "i32")) or (name, dtype) == ("mean", "i64"):
                    continue
                case(name, [made(dtype, (length,))], function)
            if (name, dtype) == ("mean", "i64"):
                # Sums below 2^53, where the order does not matter.
                case(name, [raw(sequence(0, 50, "i32").astype(np.int64))], function)
                continue
            for shape in [(3, 40, 50), (40, 3, 50), (2, 1, 300)]:
                for layout in layouts if name == "sum" else layouts[1:3]:
                    x = made(dtype, shape, layout)
                    for axes in [None, (0,), (1,), (-1,), (0, 1), (0, 2), (1, 2), (2, 0, 1), ()]:
                        if dtype not in ("f64", "c64") and axes not in (None, (1,), (0, 2)):
                            continue
                        if np.sum(x.view, axis=axes).size > 60:
                            continue
                        attributes = {} if axes is None else {"axes": list(axes)}
                        case(name, [x], lambda x: function(x, axis=axes), attributes)
            case(
                name,
                [made(dtype, (3, 40))],
                lambda x: function(x, axis=1, keepdims=True),
                {"axes": [1], "keepdims": True},
            )
        # Axes that memory does not join: numpy's buffer bounds the runs.
        for layout in [
            lambda a: a[:5, :30, :20, :30],
            lambda a: a[..., :37],
            lambda a: a[:, :5],
            lambda a: a[:5, :7, :4, :30],
            lambda a: a[:, :, :20, :30],
            lambda a: a[::-1, ::-1],
            lambda a: a[:, :, ::-1, ::3],
            lambda a: np.swapaxes(a, 1, 2)[..., 3:],
        ]:
            x = made("f64", (6, 32, 24, 40), layout)
            for axes in [None, (1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)]:
                attributes = {} if axes is None else {"axes": list(axes)}
                case(name, [x], lambda x: function(x, axis=axes), attributes)
        case(name, [raw([-0.0, -0.0], "f64")], function)
        case(name, [raw([np.inf, 1.0], "f64")], function)
        case(name, [raw([complex(np.inf, 1), 2j], "c128")], function)
        case(name, [raw(2.5, "f64")], function)
        case(name, [made("f64", (2, 3))], lambda x: function(x, axis=2), {"axes": [2]})
        case(name, [made("f64", (2, 3))], lambda x: function(x, axis=(0, -2)), {"axes": [0, -2]})
        case(name, [made("f64", (2, 0, 3))], lambda x: function(x, axis=1), {"axes": [1]})


def products():
    shapes = [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (6, 4, 5)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((3, 0), (0, 2)),
        ((0, 4), (4, 2)),
        ((3, 4), (3, 4)),
        ((), (3,)),
        ((2, 3, 4), (3, 4, 5)),
        ((4,), (5,)),
        ((20, 130), (130, 9)),
    ]
    for left, right in shapes:
        for dtypes in [
            ("i32", "i32"),
            ("i64", "i32"),
            ("bool", "bool"),
            ("f64", "f64"),
            ("f32", "f64"),
            ("c128", "c128"),
            ("c64", "f32"),
            ("f32", "f32"),
        ]:
            if (len(left) > 3 or max(left, default=0) > 10) and dtypes[0] not in ("f64", "i32"):
                continue
            x, y = made(dtypes[0], left, seed=1), made(dtypes[1], right, seed=2)
            dtype = np.result_type(x.view, y.view)
            absolute = None
            if dtype.kind in "fc" and left and right and left[-1]:
                try:
                    bound = np.abs(x.view).astype(float) @ np.abs(y.view).astype(float)
                    if bound.size:
                        absolute = float(np.max(bound) * 2 * left[-1] * np.finfo(dtype).eps)
                except ValueError:
                    pass
            case("matmul", [x, y], np.matmul, absolute=absolute)
    case(
        "matmul",
        [made("f64", (4, 3), transposed), made("f64", (5, 4), transposed, seed=3)],
        np.matmul,
        absolute=1e-13,
    )
    case(
        "matmul",
        [made("i64", (3, 8), every_second), made("i64", (4, 2), reversed_rows, seed=3)],
        np.matmul,
    )


for group in (
    arithmetic,
    powers,
    functions,
    correctly_rounded,
    selection,
    conversions,
    movement,
    reductions,
    products,
):
    group()

path = pathlib.Path(__file__).with_suffix(".json")
lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in CASES)
path.write_text(f'{{"numpy":"{np.__version__}","cases":[\n{lines}\n]}}\n')
print(f"{len(CASES)} cases, {path.stat().st_size} bytes")
