//! Guards that arrays go to other libraries and come back without a copy, that each side's memory
//! stays as long as the other uses it, and that arrays which are no tensors are refused.

mod contexts;

use contexts::any_context;
use fhelium_cuda::dlpack::Shared;
use fhelium_cuda::{Context, CudaError, Tensor};
use fhelium_ir::{Attributes, DType, Tensor as Operation};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// `DLManagedTensorVersioned`, to be changed as another library would have made it.
#[repr(C)]
struct Managed {
    major: u32,
    minor: u32,
    manager: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    data: u64,
    device: i32,
    index: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

fn counted(device: &Context, shape: &[usize], strides: &[isize]) -> Tensor {
    let bytes: Vec<u8> = (0..24).flat_map(|at: i32| at.to_ne_bytes()).collect();
    device
        .upload_tensor(DType::I32, shape, strides, &bytes)
        .unwrap()
}

/// What another library would be given.
fn given(tensor: &Tensor, versioned: bool) -> NonNull<c_void> {
    // SAFETY: the legacy default stream is always there.
    unsafe { tensor.export_dlpack(versioned, Some(1), false) }.unwrap()
}

fn taken(managed: NonNull<c_void>, versioned: bool) -> Shared {
    // SAFETY: each was exported and is taken over once.
    unsafe {
        match versioned {
            true => Shared::from_versioned(managed),
            false => Shared::from_unversioned(managed),
        }
    }
}

#[test]
fn arrays_come_back_with_the_same_memory_which_stays_while_anybody_uses_it() {
    let Some(device) = any_context() else { return };
    let used = device.memory().used;
    for versioned in [true, false] {
        let tensor = counted(&device, &[2, 3, 4], &[12, 4, 1]);
        let backwards = Attributes::from([
            ("starts", vec![1, 0, 3].into()),
            ("sizes", vec![2, 3, 2].into()),
            ("steps", vec![-1, 1, -2].into()),
        ]);
        let view = device
            .tensor(Operation::Slice, &[&tensor], &backwards)
            .unwrap();
        let expected = device.download_tensor(&view).unwrap();
        let managed = given(&view, versioned);
        let (address, strides) = (view.address(), view.strides().to_vec());
        // The export keeps the memory, and so does what comes of it.
        drop((tensor, view));
        let back = device.import_dlpack(taken(managed, versioned)).unwrap();
        assert_eq!((back.address(), back.strides()), (address, &strides[..]));
        assert_eq!((back.dtype(), back.shape()), (DType::I32, &[2, 3, 2][..]));
        let row = Attributes::from([("axis", 0.into()), ("index", 1.into())]);
        let row = device.tensor(Operation::Index, &[&back], &row).unwrap();
        assert_eq!(device.download_tensor(&back).unwrap(), expected);
        assert!(device.memory().used > used);
        drop(back);
        assert_eq!(device.download_tensor(&row).unwrap(), expected[24..]);
        drop(row);
        assert_eq!(device.memory().used, used);
    }
}

/// Views and the results of replays that share lent memory tell who lent it; others have no lender.
#[test]
fn shared_memory_knows_its_lender() {
    let Some(device) = any_context() else { return };
    let managed = given(&counted(&device, &[2, 3, 4], &[12, 4, 1]), true);
    let lent = taken(managed, true).lent_by(Arc::new("a lender"));
    let lent = device.import_dlpack(lent).unwrap();
    let row = Attributes::from([("axis", 0.into()), ("index", 1.into())]);
    let index = |tensor: &Tensor| device.tensor(Operation::Index, &[tensor], &row);
    let lender = |tensor: &Tensor| {
        let lender = tensor.lender()?.downcast_ref::<&str>();
        lender.copied()
    };
    let view = index(&lent).unwrap();
    assert_eq!([&lent, &view].map(lender), [Some("a lender"); 2]);
    let copy = device.copy_tensor(&lent).unwrap();
    assert_eq!(lender(&copy), None);
    let own = counted(&device, &[2, 3, 4], &[12, 4, 1]);
    let graph = device.capture(std::slice::from_ref(&own), |inputs| {
        Ok::<_, CudaError>(vec![index(&inputs[0])?])
    });
    let graph = graph.unwrap();
    for (input, expected) in [(&lent, Some("a lender")), (&own, None)] {
        let results = graph.replay(std::slice::from_ref(input)).unwrap();
        assert_eq!(lender(&results[0]), expected);
    }
    let unknown = device
        .import_dlpack(taken(given(&own, true), true))
        .unwrap();
    assert!(unknown.lender().is_none());
}

#[test]
fn arrays_that_are_no_tensors_are_refused_and_given_back() {
    let Some(device) = any_context() else { return };
    let used = device.memory().used;
    type Change = (&'static str, fn(&mut Managed));
    let changes: [Change; 7] = [
        ("DLPack 2.0", |managed| managed.major = 2),
        ("on the CPU", |managed| managed.device = 1),
        ("on cuda:3", |managed| managed.index = 3),
        ("uint8 x 1", |managed| (managed.code, managed.bits) = (1, 8)),
        ("int32 x 4", |managed| managed.lanes = 4),
        ("at address", |managed| managed.byte_offset = 2),
        // SAFETY: the exported shape has three entries.
        ("axes", |managed| unsafe { *managed.shape = -1 }),
    ];
    for (message, change) in changes {
        let managed = given(&counted(&device, &[2, 3, 4], &[12, 4, 1]), true);
        // SAFETY: exported and not yet taken over.
        change(unsafe { managed.cast::<Managed>().as_mut() });
        let error = device.import_dlpack(taken(managed, true)).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(device.memory().used, used, "{message}");
    }
}

#[test]
fn arrays_without_strides_are_row_major() {
    let Some(device) = any_context() else { return };
    let tensor = counted(&device, &[2, 3, 4], &[12, 4, 1]);
    let managed = given(&tensor, true);
    // SAFETY: exported and not yet taken over.
    let changed = unsafe { managed.cast::<Managed>().as_mut() };
    changed.strides = std::ptr::null_mut();
    changed.byte_offset = 4;
    // SAFETY: the exported shape has three entries.
    unsafe { *changed.shape = 1 };
    let back = device.import_dlpack(taken(managed, true)).unwrap();
    assert_eq!(
        (back.shape(), back.strides()),
        (&[1, 3, 4][..], &[12, 4, 1][..])
    );
    let expected: Vec<u8> = (1..13).flat_map(|at: i32| at.to_ne_bytes()).collect();
    assert_eq!(device.download_tensor(&back).unwrap(), expected);
}
