"""Answers questions with passages from a store: the passages' vectors come from another process over a socket."""
import multiprocessing
import socket
import struct
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PASSAGES, WIDTH, TOP = 4000, 64, 8


def vectors():
    return torch.randn(PASSAGES, WIDTH, generator=torch.Generator().manual_seed(3))


def receive(connection, size):
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts


def serve(listener):
    """The vector store. It is in another building: 20 ms for each question."""
    table = vectors()
    connection, _ = listener.accept()
    while True:
        try:
            (count,) = struct.unpack("<I", receive(connection, 4))
            ids = torch.frombuffer(receive(connection, 8 * count), dtype=torch.int64)
        except EOFError:
            return
        time.sleep(0.02)
        connection.sendall(table[ids].numpy().tobytes())


class Reader(nn.Module):
    def __init__(self, store, answers=20):
        super().__init__()
        self.store = store
        self.question = nn.Sequential(nn.Linear(WIDTH, 256), nn.GELU(), nn.Linear(256, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, batch_first=True, dropout=0.0)
        self.mix = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, answers)

    def lookup(self, ids):
        flat = ids.flatten()
        self.store.sendall(struct.pack("<I", len(flat)) + flat.numpy().tobytes())
        data = receive(self.store, 4 * WIDTH * len(flat))
        return torch.frombuffer(data, dtype=torch.float32).view(*ids.shape, WIDTH)

    def forward(self, question, ids):
        passages = self.lookup(ids)
        tokens = torch.cat([self.question(question)[:, None], passages], 1)
        return self.head(self.mix(tokens)[:, 0])


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    multiprocessing.Process(target=serve, args=(listener,), daemon=True).start()
    store = socket.create_connection(listener.getsockname())
    torch.manual_seed(3)
    ids = torch.randint(PASSAGES, (16_000, TOP))
    questions = vectors()[ids[:, 0]] + 0.3 * torch.randn(16_000, WIDTH)
    answers = ids[:, 0] % 20
    loader = DataLoader(TensorDataset(questions, ids, answers), batch_size=64, shuffle=True)
    model = Reader(store)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(4):
        for step, (question, found, answer) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(question, found), answer)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
