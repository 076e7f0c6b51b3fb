//! Clear tensor operations against numpy's results (golden/tensor.json, made by golden/tensor.py).

use fhelium_ir::{Attribute, Attributes, DType, OpKind, Tensor as Operation};
use fhelium_runtime::tensor::{Element, Tensor, evaluate};
use num_complex::Complex;
use serde_json::Value as Json;

fn ints(json: &Json) -> Vec<i64> {
    json.as_array()
        .unwrap()
        .iter()
        .map(|length| length.as_i64().unwrap())
        .collect()
}

fn lengths(json: &Json) -> Vec<usize> {
    ints(json)
        .into_iter()
        .map(|length| length as usize)
        .collect()
}

fn dtype(json: &Json) -> DType {
    json.as_str().unwrap().parse().unwrap()
}

fn bytes(json: &Json) -> Vec<u8> {
    let digits = json.as_str().unwrap().as_bytes();
    let (pairs, _) = digits.as_chunks::<2>();
    pairs
        .iter()
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The pseudo-random bits that golden/tensor.py makes.
fn hash(seed: u64, position: u64) -> u64 {
    let mut bits = position
        .wrapping_add(seed)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits ^= bits >> 32;
    bits = bits.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    bits ^ bits >> 32
}

fn fraction(bits: u64, digits: i32) -> f64 {
    let magnitude = (bits >> (64 - digits)) as f64 * 2f64.powi(-digits);
    (magnitude - 0.5) * 2f64.powi((bits & 7) as i32 - 3)
}

/// A view of a buffer, by the buffer's maker.
fn view<T: Element>(json: &Json, length: usize, element: impl Fn(u64) -> T) -> Tensor {
    let data = (0..length as u64).map(element).collect();
    let shape = lengths(&json["shape"]);
    if json["strides"].is_null() {
        return Tensor::from_vec(data, &shape).unwrap();
    }
    let strides: Vec<isize> = ints(&json["strides"])
        .into_iter()
        .map(|stride| stride as isize)
        .collect();
    let offset = json["offset"].as_u64().unwrap() as usize;
    Tensor::from_parts(data, &shape, &strides, offset).unwrap()
}

fn operand(json: &Json) -> Tensor {
    let dtype = dtype(&json["dtype"]);
    if let Some(length) = json["length"].as_u64() {
        let length = length as usize;
        let seed = json["sequence"].as_u64().unwrap();
        let f64_at = |position| fraction(hash(seed, position), 53);
        let f32_at = |position| fraction(hash(seed, position), 24) as f32;
        return match dtype {
            DType::Bool => view(json, length, |i| hash(seed, i) & 1 == 1),
            DType::I32 => view(json, length, |i| (hash(seed, i) >> 32) as i32),
            DType::I64 => view(json, length, |i| hash(seed, i) as i64),
            DType::F32 => view(json, length, f32_at),
            DType::F64 => view(json, length, f64_at),
            DType::C64 => view(json, length, |i| {
                Complex::new(f32_at(2 * i), f32_at(2 * i + 1))
            }),
            DType::C128 => view(json, length, |i| {
                Complex::new(f64_at(2 * i), f64_at(2 * i + 1))
            }),
        };
    }
    let bytes = bytes(&json["bytes"]);
    let length = bytes.len() / dtype.size();
    let flat = Tensor::from_bytes(dtype, &[length], &bytes).unwrap();
    match flat {
        Tensor::Bool(array) => view(json, length, |i| array[i as usize]),
        Tensor::I32(array) => view(json, length, |i| array[i as usize]),
        Tensor::I64(array) => view(json, length, |i| array[i as usize]),
        Tensor::F32(array) => view(json, length, |i| array[i as usize]),
        Tensor::F64(array) => view(json, length, |i| array[i as usize]),
        Tensor::C64(array) => view(json, length, |i| array[i as usize]),
        Tensor::C128(array) => view(json, length, |i| array[i as usize]),
    }
}

fn attributes(json: &Json) -> Attributes {
    let mut attributes = Attributes::new();
    for (name, value) in json.as_object().into_iter().flatten() {
        let value: Attribute = match value {
            Json::Bool(value) => (*value).into(),
            Json::Number(value) => value.as_i64().unwrap().into(),
            Json::Array(_) => ints(value).into(),
            other => dtype(&other["dtype"]).into(),
        };
        attributes.set(name.clone(), value);
    }
    attributes
}

/// A float that can say how far it is from another.
trait Float: Copy {
    /// Floats between the two, by their bits; 0 for two NaNs.
    fn ulps(self, other: Self) -> u64;
    fn distance(self, other: Self) -> f64;
    fn magnitude(self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! float {
    ($type:ty, $bits:ty) => {
        impl Float for $type {
            fn ulps(self, other: Self) -> u64 {
                if self.is_nan() || other.is_nan() {
                    return if self.is_nan() && other.is_nan() {
                        0
                    } else {
                        u64::MAX
                    };
                }
                // Ordered as the floats are, -0.0 just below 0.0.
                let order = |float: $type| {
                    let bits = float.to_bits() as $bits;
                    i128::from(if bits < 0 {
                        <$bits>::MIN - bits - 1
                    } else {
                        bits
                    })
                };
                order(self).abs_diff(order(other)) as u64
            }

            fn distance(self, other: Self) -> f64 {
                f64::from((self - other).abs())
            }

            fn magnitude(self) -> Self {
                self.abs()
            }

            fn is_nan(self) -> bool {
                self != self
            }
        }
    };
}

float!(f32, i32);
float!(f64, i64);

/// Whether each element is as close as the case asks.
struct Closeness {
    ulp: u64,
    absolute: Option<f64>,
}

impl Closeness {
    fn float<F: Float>(&self, found: F, expected: F) -> bool {
        found.ulps(expected) <= self.ulp
            || self
                .absolute
                .is_some_and(|bound| found.distance(expected) <= bound)
    }

    fn complex<F: Float>(&self, found: Complex<F>, expected: Complex<F>) -> bool {
        // C leaves open the sign of a zero or infinite part beside a NaN.
        let settle = |part: F, other: F| {
            if other.is_nan() {
                part.magnitude()
            } else {
                part
            }
        };
        self.float(settle(found.re, found.im), settle(expected.re, expected.im))
            && self.float(settle(found.im, found.re), settle(expected.im, expected.re))
    }

    fn of(&self, found: &Tensor, expected: &Tensor) -> Result<(), String> {
        fn all<T: Element>(
            found: &Tensor,
            expected: &Tensor,
            close: impl Fn(T, T) -> bool,
        ) -> Result<(), String> {
            let pairs = found.to_vec::<T>().into_iter().zip(expected.to_vec::<T>());
            for (position, (found, expected)) in pairs.enumerate() {
                if !close(found, expected) {
                    return Err(format!("element {position} is {found:?}, not {expected:?}"));
                }
            }
            Ok(())
        }
        match found.dtype() {
            DType::Bool | DType::I32 | DType::I64 => all(found, expected, |a: i64, b| a == b),
            DType::F32 => all(found, expected, |a: f32, b| self.float(a, b)),
            DType::F64 => all(found, expected, |a: f64, b| self.float(a, b)),
            DType::C64 => all(found, expected, |a: Complex<f32>, b| self.complex(a, b)),
            DType::C128 => all(found, expected, |a: Complex<f64>, b| self.complex(a, b)),
        }
    }
}

fn check(case: &Json) -> Result<(), String> {
    let name = case["operation"].as_str().unwrap();
    let Some(OpKind::Tensor(operation)) = OpKind::find(name) else {
        return Err("no such operation".into());
    };
    let operands: Vec<Tensor> = case["operands"]
        .as_array()
        .unwrap()
        .iter()
        .map(operand)
        .collect();
    let operands: Vec<&Tensor> = operands.iter().collect();
    let found = evaluate(operation, &operands, &attributes(&case["attributes"]));
    if let Some(reason) = case["refused"].as_str() {
        return match found {
            Ok(found) => Err(format!("gave {found:?}, numpy refuses: {reason}")),
            Err(_) => Ok(()),
        };
    }
    let found = found.map_err(|error| error.to_string())?;
    let result = &case["result"];
    let shape = lengths(&result["shape"]);
    let expected = Tensor::from_bytes(dtype(&result["dtype"]), &shape, &bytes(&result["bytes"]));
    let expected = expected.unwrap();
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        return Err(format!(
            "{} of shape {:?}, not {} of shape {shape:?}",
            found.dtype(),
            found.shape(),
            expected.dtype()
        ));
    }
    if !result["strides"].is_null() {
        let strides = ints(&result["strides"]);
        let differs = (0..shape.len())
            .any(|axis| shape[axis] > 1 && found.strides()[axis] as i64 != strides[axis]);
        if differs {
            return Err(format!("strides {:?}, not {strides:?}", found.strides()));
        }
    }
    Closeness {
        ulp: case["ulp"].as_u64().unwrap_or(0),
        absolute: case["absolute"].as_f64(),
    }
    .of(&found, &expected)
}

/// Which case: operation, attributes and what the operands are, without their elements.
fn describe(case: &Json) -> String {
    let operands = case["operands"].as_array().unwrap().iter().map(|operand| {
        let [dtype, shape, strides] = ["dtype", "shape", "strides"].map(|key| &operand[key]);
        format!("{} {shape} by {strides}", dtype.as_str().unwrap())
    });
    let operands: Vec<String> = operands.collect();
    let operation = case["operation"].as_str().unwrap();
    format!(
        "{operation} {} of {}",
        case["attributes"],
        operands.join(", ")
    )
}

/// Guards every operation's elements, shape, element type and memory order, and what is refused,
/// against numpy.
#[test]
fn results_equal_those_of_numpy() {
    let golden: Json = serde_json::from_str(include_str!("golden/tensor.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let reason = check(case).err()?;
            Some(format!("{}: {reason}", describe(case)))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} differ:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
    let covered = |operation: &&Operation| {
        cases
            .iter()
            .any(|case| case["operation"] == operation.def().name)
    };
    let missing: Vec<_> = Operation::ALL
        .iter()
        .filter(|op| !covered(op) && **op != Operation::Constant)
        .collect();
    assert!(missing.is_empty(), "no case covers {missing:?}");
}
