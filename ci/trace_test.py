#!/usr/bin/env python3
"""Reads a trace that `firedrill report --trace` wrote with the messages of Perfetto's own package, and holds the sums
of its slices against the history it was made from: nanoseconds by rank and phase. Exit status: 0 equal, 1 not, 4 where
the PyPI package perfetto is not there (ci/setup --report fetches it).

usage: ci/trace_test.py FIREDRILL SCENARIO
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".deps" / "tools"


def spans_of_trace(packets):
    """Sums by (rank, phase), names of instants, and what is wrong with the order of begins and ends."""
    names, open_slices, sums, instants, wrong = {}, collections.defaultdict(list), collections.Counter(), [], []
    for packet in packets:
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
    for packet in packets:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        track = names.get(event.track_uuid, "")
        if event.type == event.TYPE_SLICE_BEGIN:
            open_slices[track].append((event.name, packet.timestamp))
        elif event.type == event.TYPE_SLICE_END:
            if not open_slices[track]:
                wrong.append(f"{track}: a slice ends that did not begin")
                continue
            name, began = open_slices[track].pop()
            if track.startswith("rank "):
                sums[int(track.split()[1].rstrip(",")), name] += packet.timestamp - began
        elif event.type == event.TYPE_INSTANT:
            instants.append(event.name)
    wrong += [f"{track}: a slice does not end" for track, left in open_slices.items() if left]
    return sums, instants, wrong


def spans_of_history(lines):
    phases = {"input", "forward", "backward", "exchange", "optimizer", "save", "commit", "validate", "retire", "find",
              "restore", "rendezvous", "other"}
    sums, faults = collections.Counter(), 0
    for line in lines:
        event = json.loads(line)
        faults += event.get("event") == "fault_fired"
        if event.get("event") == "time_spent" and event["what"] in phases and event["nanoseconds"] > 0:
            sums[event["rank"], event["what"]] += event["nanoseconds"]
    return sums, faults


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 1
    sys.path.insert(0, str(TOOLS))
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError as absent:
        print(f"ci/trace_test.py: {absent}: the trace was NOT read (ci/setup --report)", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory() as folder:
        kept, file = f"{folder}/run", f"{folder}/trace"
        subprocess.run([sys.argv[1], "run", sys.argv[2], "--out", kept], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([sys.argv[1], "report", kept, "--trace", file], check=True, stdout=subprocess.DEVNULL)
        trace = perfetto_trace_pb2.Trace.FromString(pathlib.Path(file).read_bytes())
        told, faults = spans_of_history(pathlib.Path(kept, "history.jsonl").read_text().splitlines())
    sums, instants, wrong = spans_of_trace(trace.packet)
    wrong += [f"rank {rank}, {phase}: {sums[rank, phase]} ns in the trace, {told[rank, phase]} in the history"
              for rank, phase in sorted(sums.keys() | told.keys()) if sums[rank, phase] != told[rank, phase]]
    shown = sum(name.startswith("fault: ") for name in instants)
    if shown != faults or faults == 0:
        wrong.append(f"{shown} faults in the trace, {faults} in the history")
    print("\n".join(wrong) or f"{len(trace.packet)} packets; {len(sums)} sums of rank and phase equal the history's; "
          f"{shown} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
