import torch
from torch import nn

EOS = 2


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16)
        self.rnn = nn.GRUCell(16, 16)
        self.out = nn.Linear(16, 50)
        self.vocab = {i: f"w{i}" for i in range(50)}
        self.drop = nn.Dropout(0.1)

    def forward(self, feats, max_len=8):
        h = feats
        tok = torch.ones(feats.shape[0], dtype=torch.long)
        words = []
        for i in range(max_len):
            h = self.rnn(self.drop(self.emb(tok)), h)
            tok = self.out(h).argmax(-1)
            if tok[0].item() == EOS:
                break
            words.append(self.vocab[tok[0].item()])
        return " ".join(words), h
