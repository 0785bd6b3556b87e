"""Times a network under ONNX Runtime or OpenVINO: onnx_peer.py onnxruntime|openvino FILE THREADS SECONDS

Prints in milliseconds the best step, the median one, CPU time per step and the first step, then the peak memory in MB,
with tabs between them. The input is of random numbers in the shape that the file names.
"""

import resource
import statistics
import sys
import time


def with_onnxruntime(path, threads):
    import numpy
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    x = numbers(numpy, given.shape, "int" in given.type)
    return lambda: session.run(None, {given.name: x})


def with_openvino(path, threads):
    import numpy
    import openvino
    core = openvino.Core()
    # Its default on a CPU with AMX is bfloat16; the others compute floats.
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    model = core.compile_model(core.read_model(path), "CPU", settings)
    given = model.input(0)
    x = numbers(numpy, list(given.shape), given.element_type.is_integral())
    request = model.create_infer_request()
    return lambda: request.infer({0: x})


def numbers(numpy, shape, is_integer):
    random = numpy.random.default_rng(1)
    return random.integers(0, 1000, shape) if is_integer else random.standard_normal(shape, dtype=numpy.float32)


def main():
    runtime, path, threads, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    step = {"onnxruntime": with_onnxruntime, "openvino": with_openvino}[runtime](path, threads)
    start = time.perf_counter()
    step()
    first, begin = time.perf_counter() - start, time.perf_counter()
    while time.perf_counter() - begin < seconds / 4:
        step()
    times, begin, cpu = [], time.perf_counter(), time.process_time()
    while len(times) < 3 or (len(times) < 20000 and time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / len(times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024e-6
    milliseconds = [1e3 * t for t in (min(times), statistics.median(times), cpu, first)]
    print("%.5f\t%.5f\t%.5f\t%.3f\t%.1f" % (*milliseconds, peak))


if __name__ == "__main__":
    main()
