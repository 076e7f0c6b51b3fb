//! A CUDA graph of steps, one after the other; launches whose shape says so may begin beside the one before.

use crate::device::Device;
use crate::error::{Result, driver};
use crate::queue::{Action, Queue, Shape, Step, uncaptured};
use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUgraphNode};
use std::ffi::c_void;
use std::sync::Arc;

/// Such a graph, ready to be launched.
pub(crate) struct Executable {
    /// Its nodes name those of the executable.
    graph: Option<Template>,
    executable: CUgraphExec,
    nodes: Vec<CUgraphNode>,
    device: Arc<Device>,
}

/// The edge to a launch whose blocks may be placed once all of the launch before say so.
const BESIDE: sys::CUgraphEdgeData = sys::CUgraphEdgeData {
    from_port: sys::CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
    to_port: 0,
    type_: sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8,
    reserved: [0; 5],
};

/// The graph before it was made ready.
struct Template(CUgraph);

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: made once, here destroyed once.
        let _ = unsafe { sys::cuGraphDestroy(self.0) };
    }
}

// SAFETY: the driver takes the handles from any thread as long as calls are serialized, and every use is
// under the `Graph`'s lock.
unsafe impl Send for Executable {}

impl Executable {
    /// Builds it with what the steps hold now. The caller has the queue's lock.
    pub fn new(device: &Arc<Device>, steps: &[Step]) -> Result<Self> {
        let failed = driver("building a graph");
        let context = device.context().cu_ctx();
        let mut graph = std::ptr::null_mut();
        // SAFETY: the place is live.
        unsafe { sys::cuGraphCreate(&mut graph, 0) }
            .result()
            .map_err(&failed)?;
        let graph = Template(graph);
        let mut nodes: Vec<CUgraphNode> = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let mut node = std::ptr::null_mut();
            let before = nodes.last().map_or(std::ptr::null(), std::ptr::from_ref);
            let beside = device.overlaps_launches()
                && at > 0
                && matches!(steps[at - 1].action, Action::Launch(_))
                && matches!(step.action, Action::Launch(shape) if shape.beside);
            let count = usize::from(at > 0 && !beside);
            let added = match step.action {
                Action::Launch(shape) => with_launch(shape, &step.words, |parameters| {
                    // SAFETY: graph, dependency and parameters are live; the driver copies the latter.
                    unsafe {
                        sys::cuGraphAddKernelNode_v2(&mut node, graph.0, before, count, parameters)
                    }
                }),
                Action::Copy { bytes } => {
                    let copy = copy_of(&step.words, bytes);
                    // SAFETY: as above.
                    unsafe {
                        sys::cuGraphAddMemcpyNode(&mut node, graph.0, before, count, &copy, context)
                    }
                }
            };
            added.result().map_err(&failed)?;
            if beside {
                // SAFETY: both nodes are the graph's.
                unsafe { sys::cuGraphAddDependencies_v2(graph.0, before, &node, &BESIDE, 1) }
                    .result()
                    .map_err(&failed)?;
            }
            nodes.push(node);
        }
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is live.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph.0, 0) }
            .result()
            .map_err(&failed)?;
        Ok(Executable {
            graph: Some(graph),
            executable,
            nodes,
            device: device.clone(),
        })
    }

    /// Gives a step what it holds now; launches so far are not affected. The caller has the queue's
    /// lock: the driver reads the calling thread's context, and ends the process where it has none.
    pub fn update(&self, index: usize, step: &Step) -> Result<()> {
        let failed = driver("binding a graph's operands");
        let context = self.device.context().cu_ctx();
        let node = self.nodes[index];
        let updated = match step.action {
            Action::Launch(shape) => with_launch(shape, &step.words, |parameters| {
                // SAFETY: the node is of this graph and of the step's kind; the driver copies the
                // parameters.
                unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.executable, node, parameters) }
            }),
            Action::Copy { bytes } => {
                let copy = copy_of(&step.words, bytes);
                // SAFETY: as above.
                unsafe {
                    sys::cuGraphExecMemcpyNodeSetParams(self.executable, node, &copy, context)
                }
            }
        };
        updated.result().map_err(failed)
    }
}

impl Queue {
    /// Puts a graph into the stream. The caller has the queue's lock.
    ///
    /// # Safety
    /// Every address in its steps is of a live buffer, as for [`Queue::submit`].
    pub(crate) unsafe fn launch_graph(&self, executable: &Executable) -> Result<()> {
        // SAFETY: graph and stream are live; the rest is the caller's promise.
        unsafe { sys::cuGraphLaunch(executable.executable, self.handle()) }
            .result()
            .map_err(driver("replaying a graph"))
    }
}

/// Calls the driver with a launch's parameters, which live that long.
fn with_launch(
    shape: Shape,
    words: &[u64],
    call: impl FnOnce(*const sys::CUDA_KERNEL_NODE_PARAMS) -> sys::CUresult,
) -> sys::CUresult {
    let mut words = [words.as_ptr().cast_mut().cast::<c_void>()];
    call(&sys::CUDA_KERNEL_NODE_PARAMS {
        func: shape.function.0,
        gridDimX: shape.grid[0],
        gridDimY: shape.grid[1],
        gridDimZ: shape.grid[2],
        blockDimX: shape.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shape.shared,
        kernelParams: words.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    })
}

fn copy_of(words: &[u64], bytes: usize) -> sys::CUDA_MEMCPY3D {
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: words[1],
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: words[0],
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        let Ok(_current) = self.device.enter() else {
            std::mem::forget(self.graph.take());
            return;
        };
        // This thread may be capturing something else, which it would spoil.
        let _ = uncaptured(|| {
            // SAFETY: made once, here destroyed once; a launch that still runs is not affected.
            let _ = unsafe { sys::cuGraphExecDestroy(self.executable) };
            drop(self.graph.take());
            Ok(())
        });
    }
}
