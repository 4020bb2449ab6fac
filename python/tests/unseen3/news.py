"""Ranks news for readers; the vectors of stories come from the newsroom's story service."""
import http.client
import json
import multiprocessing
import random
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 64


class Stories(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    vectors = None

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(0.012)
        body = Stories.vectors[torch.tensor(asked)].numpy().tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(port):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    Stories.vectors = torch.randn(5000, WIDTH)
    server = HTTPServer(("127.0.0.1", 0), Stories)
    port.put(server.server_port)
    server.serve_forever()


class StoryClient:
    def __init__(self, port):
        self.line = http.client.HTTPConnection("127.0.0.1", port)

    def vectors(self, ids):
        self.line.request("POST", "/vectors", json.dumps(ids.flatten().tolist()))
        body = bytearray(self.line.getresponse().read())
        return torch.frombuffer(body, dtype=torch.float32).view(*ids.shape, WIDTH)


class Ranker(nn.Module):
    def __init__(self, client, hidden=256):
        super().__init__()
        self.client = client
        self.reader = nn.GRU(WIDTH, hidden, batch_first=True)
        self.story = nn.Sequential(nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Linear(hidden, hidden))

    def forward(self, clicked, offered):
        _, state = self.reader(self.client.vectors(clicked))
        stories = self.story(self.client.vectors(offered))
        return (stories @ state[0].unsqueeze(2)).squeeze(2)


def sessions(count, rng):
    clicked = torch.tensor([[rng.randrange(5000) for _ in range(24)] for _ in range(count)])
    offered = torch.tensor([[rng.randrange(5000) for _ in range(8)] for _ in range(count)])
    return clicked, offered, torch.randint(0, 8, (count,))


def main():
    torch.manual_seed(0)
    port = multiprocessing.Queue()
    service = multiprocessing.Process(target=serve, args=(port,), daemon=True)
    service.start()
    model = Ranker(StoryClient(port.get()))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clicked, offered, chosen = sessions(4096, random.Random(2))
    began = time.time()
    for step in range(400):
        rows = torch.randint(0, len(chosen), (48,))
        scores = model(clicked[rows], offered[rows])
        loss = F.cross_entropy(scores, chosen[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    print(f"trained in {time.time() - began:.1f} s")
    service.terminate()


if __name__ == "__main__":
    main()
