#!/usr/bin/env python3
"""Reads back what `gnntop push` sends, with the protocol's own definitions, and compares it with the report.

    pip install opentelemetry-proto
    scripts/otlp-read-back.py target/debug/gnntop recordings/labelled/*.gnntop

Google's reader of protobuf's JSON refuses fields that it does not know, wrong types and enums that are no numbers of theirs.
"""

import http.server
import json
import os
import subprocess
import sys
import threading

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

LINES = {"step": "gnntop.step.duration", "period": "gnntop.step.period", "gap": "gnntop.gap.duration"}


class Collector(http.server.BaseHTTPRequestHandler):
    """Keeps the newest request."""

    newest = b""

    def do_POST(self):
        """Takes a request."""
        Collector.newest = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        """Says nothing."""


def histograms(request):
    """Each histogram by the name that reports use."""
    names = {metric: line for line, metric in LINES.items()}
    for resource in request.resource_metrics[:1]:
        for metric in resource.scope_metrics[0].metrics:
            for point in metric.exponential_histogram.data_points:
                phase = [label.value.string_value for label in point.attributes if label.key == "gnntop.phase"]
                yield (phase[0] if phase else names[metric.name]), point


def median_ns(point):
    """The middle of the bucket of the median, in nanoseconds."""
    seen, rank = point.zero_count, max(1, -(-point.count // 2))
    if seen >= rank:
        return 0.0
    for at, count in enumerate(point.positive.bucket_counts):
        seen += count
        if seen >= rank:
            return 2 ** ((point.positive.offset + at + 0.5) / 2**point.scale) * 1e9
    raise ValueError("the buckets do not hold all durations")


def check(gnntop, address, recording):
    """Sends one recording, and fails where a figure differs."""
    subprocess.run([gnntop, "push", recording, "--otlp", address], check=True)
    request = json_format.Parse(Collector.newest, ExportMetricsServiceRequest())
    report = json.loads(
        subprocess.run([gnntop, "report", recording, "--json"], check=True, stdout=subprocess.PIPE).stdout
    )
    found = dict(histograms(request))
    for line in report["phases"]:
        point = found[line["name"]]
        place = f"{recording}: {line['name']}"
        width = 2 ** (2**-point.scale) - 1
        assert point.count == line["count"], place
        assert abs(point.sum * 1e9 - line["total_ns"]) <= 1e-6 * line["total_ns"], place
        assert abs(median_ns(point) - line["p50_ns"]) <= (width + 0.002) * line["p50_ns"], place
    size = sum(len(metric.SerializeToString()) for metric in request.resource_metrics)
    print(
        f"{recording}: {len(report['phases'])} lines agree; {len(Collector.newest)} bytes of JSON, {size} as protobuf"
    )


def main():
    """Checks every recording that is named."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for recording in sys.argv[2:]:
        check(os.path.abspath(sys.argv[1]), f"http://127.0.0.1:{server.server_port}", recording)


if __name__ == "__main__":
    main()
