use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use candle_core::backprop::GradStore;
use candle_core::{DType, Var};

use super::super::{GradientSync, thread_ranks};
use super::*;
use gnntop_nn::models::Parameter;

/// A fake NCCL, loaded for one test: no other test sees its calls.
struct Fake {
    functions: &'static Functions,
    log: unsafe extern "C" fn(c_int) -> *const c_char,
    misuses: unsafe extern "C" fn() -> c_int,
    fail: unsafe extern "C" fn(c_int, *const c_char),
    has_called: unsafe extern "C" fn(c_int, *const c_char) -> c_int,
    lose: unsafe extern "C" fn(c_int),
    _folder: tempfile::TempDir,
}

impl Fake {
    /// Compiles it. Where there is no C compiler it says so, and a test is to be skipped.
    fn load() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_nccl.c");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let library = folder.path().join("libnccl.so.2");
        let mut compile = Command::new(&compiler);
        compile.args(["-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-pthread", "-o"]).arg(&library).arg(source);
        match compile.status() {
            Ok(status) => assert!(status.success(), "the fake NCCL does not compile as C"),
            Err(reason) => {
                eprintln!("skipped: {compiler}: {reason}");
                return None;
            }
        }
        let file = library.to_str().unwrap();
        let functions = Box::leak(Box::new(Functions::in_file(file).unwrap()));
        let file = CString::new(file).unwrap();
        let find = |name: &CStr| {
            // SAFETY: both texts end with a zero byte; the library is loaded already and stays.
            let symbol = unsafe { libc::dlsym(libc::dlopen(file.as_ptr(), libc::RTLD_NOW), name.as_ptr()) };
            assert!(!symbol.is_null());
            symbol
        };
        // SAFETY: fake_nccl.c has these functions, each with the type of the field that it becomes.
        unsafe {
            Some(Self {
                functions,
                log: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> *const c_char>(find(
                    c"fake_log",
                )),
                misuses: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(find(c"fake_misuses")),
                fail: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int, *const c_char)>(find(
                    c"fake_fail",
                )),
                has_called: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int, *const c_char) -> c_int>(
                    find(c"fake_has_called"),
                ),
                lose: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int)>(find(c"fake_break")),
                _folder: folder,
            })
        }
    }

    /// A rank's calls, in order, while no other thread uses the library.
    fn calls(&self, rank: c_int) -> Vec<String> {
        // SAFETY: the text ends with a zero byte and is not being written.
        let log = unsafe { CStr::from_ptr((self.log)(rank)) }.to_str().unwrap().to_owned();
        log.lines().map(str::to_owned).collect()
    }

    /// The next such call of this rank fails.
    fn fail(&self, rank: c_int, call: &CStr) {
        // SAFETY: the text ends with a zero byte and is copied; no other thread uses the library yet.
        unsafe { (self.fail)(rank, call.as_ptr()) }
    }

    /// Runs `body` on ranks that NCCL joins; results in their order. No communicator is used after its end.
    fn on_ranks<T: Send>(&self, ranks: usize, body: impl Fn(&dyn Collective) -> T + Sync) -> Vec<T> {
        let hosts = thread_ranks(ranks, false).into_iter().map(|rank| Arc::new(rank) as Arc<dyn Collective>);
        let (body, members) = (&body, super::ranks(self.functions, hosts.collect()));
        let results = thread::scope(|scope| {
            let threads: Vec<_> = members.into_iter().map(|rank| scope.spawn(move || body(&*rank))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        // SAFETY: takes nothing.
        assert_eq!(unsafe { (self.misuses)() }, 0, "a communicator was used after its end, or by two threads at once");
        results
    }
}

fn tensor(values: &[f32]) -> Tensor {
    Tensor::new(values, &Device::Cpu).unwrap()
}

fn device(rank: &dyn Collective) -> &dyn OnDevice {
    rank.on_device().unwrap()
}

#[test]
fn tensors_are_joined_where_they_lie_and_all_else_goes_by_the_host() {
    let Some(nccl) = Fake::load() else { return };
    let seen = nccl.on_ranks(3, |rank| {
        let number = rank.rank() as f32;
        let (values, shared) = (tensor(&[number, 10.0, 3.0 * number]), tensor(&[number; 5]));
        device(rank).broadcast(2, &shared).unwrap();
        device(rank).mean(&values).unwrap();
        let mut sums = [number];
        rank.all_reduce(&mut sums).unwrap();
        rank.barrier().unwrap();
        assert_eq!((rank.gather(1.5).unwrap(), rank.engine()), (vec![1.5; 3], Engine::Nccl));
        (shared.to_vec1::<f32>().unwrap(), values.to_vec1::<f32>().unwrap(), sums[0])
    });
    for (shared, values, sum) in seen {
        assert_eq!((shared, values, sum), (vec![2.0; 5], vec![1.0, 10.0, 3.0], 3.0));
    }
    let expected = ["join", "broadcast of 5 from 2", "all-reduce of 3", "finalize", "destroy"];
    assert_eq!([nccl.calls(1), nccl.calls(2)], [expected, expected]);
    assert_eq!(nccl.calls(0)[..2], ["id", "join"]);
}

#[test]
fn ranks_that_join_no_tensors_need_no_gpu() {
    let Some(nccl) = Fake::load() else { return };
    nccl.on_ranks(2, |rank| rank.barrier().unwrap());
    assert!(nccl.calls(0).is_empty() && nccl.calls(1).is_empty());
}

#[test]
fn only_what_lies_in_one_piece_as_f32_is_joined() {
    let Some(nccl) = Fake::load() else { return };
    nccl.on_ranks(2, |rank| {
        let transposed = Tensor::zeros((2, 3), DType::F32, &Device::Cpu).unwrap().t().unwrap();
        let wide = Tensor::zeros(2, DType::F64, &Device::Cpu).unwrap();
        assert!(device(rank).mean(&transposed).is_err() && device(rank).mean(&wide).is_err());
    });
    assert!(nccl.calls(0).is_empty());
}

fn parameter(name: &str, values: &[f32]) -> Parameter {
    Parameter { name: name.to_owned(), var: Var::new(values, &Device::Cpu).unwrap() }
}

/// Parameters that differ from rank to rank; two of them are a bucket each.
fn parameters(rank: usize) -> Vec<Parameter> {
    let big = |length: usize| (0..length).map(|at| (at % 97) as f32 - rank as f32).collect::<Vec<_>>();
    vec![
        parameter("a", &big(3)),
        parameter("b", &big(700_000)),
        parameter("c", &big(600_000)),
        parameter("without a gradient", &big(5)),
        parameter("d", &big((1 << 20) + 1)),
    ]
}

/// Gradients of `sum(scale * var * var)` for all but the one that has none.
fn gradients(parameters: &[Parameter], scale: f64) -> GradStore {
    let with = parameters.iter().filter(|parameter| parameter.name != "without a gradient");
    let squares = with.map(|parameter| (parameter.var.sqr().unwrap() * scale).unwrap().sum_all().unwrap());
    squares.reduce(|a, b| (a + b).unwrap()).unwrap().backward().unwrap()
}

/// What ranks have of parameters and gradients after sharing the first and joining the second.
fn synchronised(rank: &dyn Collective) -> Vec<(Vec<f32>, Option<Vec<f32>>)> {
    let parameters = parameters(rank.rank());
    let mut sync = GradientSync::new(parameters.clone());
    sync.share_parameters(rank).unwrap();
    let mut gradients = gradients(&parameters, 1.0 + rank.rank() as f64);
    sync.all_reduce(&mut gradients, rank).unwrap();
    let values = |tensor: &Tensor| tensor.to_vec1::<f32>().unwrap();
    parameters.iter().map(|Parameter { var, .. }| (values(var), gradients.get(var).map(values))).collect()
}

#[test]
fn gradients_are_those_of_the_other_engines_bucket_by_bucket() {
    let Some(nccl) = Fake::load() else { return };
    let joined = nccl.on_ranks(2, synchronised);
    let hosts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> =
            thread_ranks(2, false).into_iter().map(|rank| scope.spawn(move || synchronised(&rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // Two ranks: a half is exact, so the order of dividing and adding does not show.
    assert!(joined == hosts && joined[0] == joined[1]);
    assert!(joined[0][3].1.is_none() && joined[0][1].1.is_some());
    let shared = [3, 700_000, 600_000, 5, 1_048_577].map(|length| format!("broadcast of {length} from 0"));
    let means = [700_003, 600_005, 1_048_577].map(|length| format!("all-reduce of {length}"));
    let calls = nccl.calls(1);
    assert_eq!(calls[1..=5], shared);
    assert_eq!(calls[6..], [&means[..], &["finalize".to_owned(), "destroy".to_owned()]].concat());
}

#[test]
fn a_gradient_that_two_parameters_share_is_joined_once() {
    let Some(nccl) = Fake::load() else { return };
    let seen = nccl.on_ranks(2, |rank| {
        // One parameter in its bucket, and two: memory of a gradient is not written.
        let length = (1 << 20) - 1;
        let parameters = [parameter("a", &vec![0.0; length]), parameter("b", &vec![0.0; length])];
        let gradient = Tensor::full(rank.rank() as f32, length, &Device::Cpu).unwrap();
        let mut gradients = GradStore::default();
        parameters.iter().for_each(|parameter| drop(gradients.insert(&parameter.var, gradient.clone())));
        GradientSync::new(parameters.to_vec()).all_reduce(&mut gradients, rank).unwrap();
        let first = |parameter: &Parameter| gradients.get(&parameter.var).unwrap().to_vec1::<f32>().unwrap()[0];
        [first(&parameters[0]), first(&parameters[1]), gradient.to_vec1::<f32>().unwrap()[0] - rank.rank() as f32]
    });
    assert_eq!(seen, [[0.5, 0.5, 0.0]; 2]);
}

#[test]
fn parts_of_a_group_have_groups_of_their_own() {
    let Some(nccl) = Fake::load() else { return };
    let seen = nccl.on_ranks(4, |rank| {
        let part = rank.split(rank.rank() % 2).unwrap();
        let values = tensor(&[rank.rank() as f32]);
        device(&*part).mean(&values).unwrap();
        (part.ranks(), values.to_vec1::<f32>().unwrap()[0])
    });
    assert_eq!(seen, [(2, 1.0), (2, 2.0), (2, 1.0), (2, 2.0)]);
}

/// The errors of ranks that leave when they fail, like those of a training run.
fn ends(nccl: &Fake, ranks: usize, body: impl Fn(&dyn Collective) -> Result<(), SyncError> + Sync) -> Vec<String> {
    nccl.on_ranks(ranks, |rank| {
        let error = body(rank).unwrap_err().to_string();
        rank.leave(&format!("has failed: {error}"));
        error
    })
}

#[test]
fn an_error_names_the_rank_and_the_operation_and_nobody_waits() {
    for (call, what) in [
        (c"join", "joining 3 GPUs"),
        (c"broadcast", "broadcast of 2 values"),
        (c"all-reduce", "all-reduce of 2 values"),
    ] {
        let Some(nccl) = Fake::load() else { return };
        nccl.fail(1, call);
        let ended = ends(&nccl, 3, |rank| {
            let values = tensor(&[1.0, 2.0]);
            device(rank).broadcast(0, &values)?;
            device(rank).mean(&values)?;
            Ok(rank.barrier()?)
        });
        let expected = format!("NCCL failed: rank 1 in {what}: unhandled cuda error: Cuda failure 2 'out of memory'");
        assert_eq!(ended[1], expected);
        let follows = format!("rank 1 has failed: {expected}");
        assert_eq!([&ended[0], &ended[2]], [&follows; 2]);
        assert!((0..3).all(|rank| nccl.calls(rank).last().unwrap() == "abort"), "nothing is left on a device");
    }
}

#[test]
fn without_an_id_nobody_joins() {
    let Some(nccl) = Fake::load() else { return };
    nccl.fail(0, c"id");
    let ended = ends(&nccl, 2, |rank| device(rank).mean(&tensor(&[1.0])));
    assert!(ended[0].starts_with("NCCL failed: rank 0 in making an id: unhandled cuda error"), "{ended:?}");
    assert!(ended[1].starts_with("rank 0 has failed: NCCL failed"), "{ended:?}");
}

#[test]
fn ranks_that_wait_on_a_device_for_one_that_is_gone_are_let_go() {
    let Some(nccl) = Fake::load() else { return };
    let ended = ends(&nccl, 3, |rank| {
        let values = tensor(&[1.0]);
        device(rank).mean(&values)?;
        if rank.rank() == 2 {
            thread::sleep(Duration::from_millis(20));
            return Err(candle_core::Error::Msg("no more memory".to_owned()).into());
        }
        let waited = device(rank).mean(&values);
        assert!(device(rank).mean(&values).is_err() && device(rank).broadcast(0, &values).is_err());
        waited
    });
    assert_eq!(ended, ["rank 2 has failed: no more memory", "rank 2 has failed: no more memory", "no more memory"]);
    assert!((0..3).all(|rank| nccl.calls(rank).last().unwrap() == "abort"), "nothing is left on a device");
}

#[test]
fn what_nccl_notices_by_itself_is_told_and_its_work_taken_off_the_device() {
    let Some(nccl) = Fake::load() else { return };
    let ended = ends(&nccl, 2, |rank| {
        let values = tensor(&[1.0]);
        device(rank).mean(&values)?;
        if rank.rank() == 1 {
            // SAFETY: the rank has joined.
            unsafe { (nccl.lose)(1) };
            // Where a rank waits for its device it makes no call: it is done for it.
            let begin = Instant::now();
            // SAFETY: the text ends with a zero byte.
            while unsafe { (nccl.has_called)(1, c"abort".as_ptr()) } == 0 {
                assert!(begin.elapsed() < Duration::from_secs(60), "no one checks it");
                thread::sleep(Duration::from_millis(5));
            }
        }
        device(rank).mean(&values)
    });
    let words = "rank 1 in work under way: remote process exited or there was a network error";
    assert_eq!(ended[1], format!("NCCL failed: {words}"));
    assert_eq!(ended[0], format!("rank 1 has failed: NCCL failed: {words}"));
}

#[test]
fn ranks_that_make_different_calls_end() {
    let Some(nccl) = Fake::load() else { return };
    let ended = ends(&nccl, 2, |rank| {
        let values = tensor(&[1.0, 2.0, 3.0]);
        let own = values.narrow(0, 0, 2 + rank.rank()).unwrap();
        device(rank).mean(&own)
    });
    // The second to call is refused, or finds that the first has ended the work of both.
    let refused = ["all-reduce of 2 values", "all-reduce of 3 values", "work under way"];
    let is_refused = |error: &String| refused.iter().any(|what| error.contains(&format!("{what}: invalid usage")));
    assert!(ended.iter().any(is_refused), "{ended:?}");
}

#[test]
fn a_missing_library_or_function_is_one_line() {
    let error = Functions::in_file("libnccl-that-is-nowhere.so.2").unwrap_err().to_string();
    assert!(error.starts_with("NCCL failed: it cannot be loaded (libnccl-that-is-nowhere.so.2: "), "{error}");
    assert!(error.contains("install NCCL 2.14 or newer") && !error.contains('\n'), "{error}");
    let error = Functions::in_file("libc.so.6").unwrap_err().to_string();
    assert_eq!(error, "NCCL failed: it has no ncclGetUniqueId: install NCCL 2.14 or newer");
}
