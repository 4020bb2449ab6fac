#!/usr/bin/env python3
"""Reads gnntop's Perfetto export back with Perfetto's own software and compares it with the NDJSON export.

usage: perfetto-read-back.py [--trace-processor PATH] [--schema-only] RECORDING...

Needs the Python package perfetto. First every packet is read by Perfetto's schema, which is part of it: no unknown
field, and the recording's slices, instants and values in number and time. Then trace_processor_shell counts and adds
them up by SQL; the package downloads it unless --trace-processor names one, and --schema-only does without. gnntop is
target/release/gnntop, or the program named by the variable GNNTOP. Ends with 1 at the first difference.
"""
import argparse, collections, json, os, subprocess, sys, tempfile

GNNTOP = os.environ.get("GNNTOP", "target/release/gnntop")


def export(recording, form, path):
    subprocess.run([GNNTOP, "export", recording, "--to", form, "--force", "-o", path], check=True, stderr=subprocess.DEVNULL)


def expected(path):
    """The recording's content: number and time in ns of slices by name, instants, values by name."""
    slices, instants, values = collections.defaultdict(lambda: [0, 0]), 0, collections.Counter()
    for line in open(path, encoding="utf-8"):
        event = json.loads(line)
        kind, ns = event["kind"], event["end_ns"] - event["start_ns"]
        if kind in ("counter", "sample"):
            unit = f" [{event['unit']}]" if kind == "sample" else ""
            values[event["name"] + unit] += 1
        elif ns == 0:
            instants += 1
        else:
            name = f"step {event['step']}" if kind == "step" else event["name"]
            slices[name] = [slices[name][0] + 1, slices[name][1] + ns]
    return dict(slices), instants, dict(values)


def by_schema(path):
    """The same by Perfetto's schema and by the rule of its trace processor: in the order of time, an end ends the slice of its
    track that began last."""
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    trace.ParseFromString(open(path, "rb").read())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    slices, instants, values = collections.defaultdict(lambda: [0, 0]), 0, collections.Counter()
    begun = collections.defaultdict(list)
    for packet in sorted(trace.packet, key=lambda packet: packet.timestamp):
        event = packet.track_event
        if len(UnknownFieldSet(packet)) or len(UnknownFieldSet(event)):
            sys.exit(f"{path}: a field that Perfetto's schema does not have")
        if not packet.HasField("track_event"):
            continue
        track = tracks[event.track_uuid]  # Fails where a track has no descriptor.
        if event.type == TrackEvent.TYPE_COUNTER:
            if not track.HasField("counter"):
                sys.exit(f"{path}: a value outside a counter's track")
            values[track.name] += 1
        elif event.type == TrackEvent.TYPE_INSTANT:
            instants += 1
        elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
            begun[event.track_uuid].append((event.name, packet.timestamp))
        elif not begun[event.track_uuid]:
            sys.exit(f"{path}: an end without a beginning")
        else:
            name, start_ns = begun[event.track_uuid].pop()
            slices[name] = [slices[name][0] + 1, slices[name][1] + packet.timestamp - start_ns]
    if any(begun.values()):
        sys.exit(f"{path}: slices that do not end")
    return dict(slices), instants, dict(values)


def by_sql(path, binary):
    """The same by the trace processor."""
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=binary)) as processor:
        ask = lambda query: list(processor.query(query))
        for problem in ask("select name, value from stats where severity in ('error', 'data_loss') and value > 0"):
            sys.exit(f"{path}: {problem.name}: {problem.value}")
        slices = ask("select name, count(*) as n, sum(dur) as ns from slice where dur != 0 group by name")
        instants = ask("select count(*) as n from slice where dur = 0")[0].n
        values = ask("select t.name, count(*) as n from counter c join counter_track t on c.track_id = t.id group by t.name")
    return {row.name: [row.n, row.ns] for row in slices}, instants, {row.name: row.n for row in values}


def compare(what, recording, ours, theirs):
    if ours == theirs:
        return
    for kind, a, b in zip(("slices", "instants", "values"), ours, theirs):
        if a != b and isinstance(a, dict):
            name = next(name for name in {**a, **b} if a.get(name) != b.get(name))
            kind, a, b = f"{kind} {name}", a.get(name), b.get(name)
        if a != b:
            sys.exit(f"{recording}: {kind} differ by {what}: the recording has {a}, the export {b}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trace-processor", metavar="PATH")
    parser.add_argument("--schema-only", action="store_true")
    parser.add_argument("recordings", nargs="+", metavar="RECORDING")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lines, trace = os.path.join(scratch, "a.ndjson"), os.path.join(scratch, "a.pftrace")
        for recording in options.recordings:
            export(recording, "ndjson", lines)
            export(recording, "perfetto", trace)
            slices, instants, values = expected(lines)
            compare("schema", recording, (slices, instants, values), by_schema(trace))
            if not options.schema_only:
                compare("SQL", recording, (slices, instants, values), by_sql(trace, options.trace_processor))
            sums = f"{sum(n for n, _ in slices.values())} slices, {instants} instants, {sum(values.values())} values"
            print(f"{recording}: {sums}, the same by schema{'' if options.schema_only else ' and SQL'}", flush=True)


main()
