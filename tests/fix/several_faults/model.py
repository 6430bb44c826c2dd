# trueport fix build -i ids:BxS:i64@0..99
# then: build -i ids:BxS:i64@0..99 --state inputs-outputs
import torch
from torch import nn
from .blocks import Attn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 16)
        self.attn = Attn()
        self.steps = 0
        self.fc = nn.Linear(16, 4).half()

    def forward(self, ids):
        self.steps += 1
        h = self.emb(ids)
        h = self.attn(h)
        pooled = torch.zeros(2, 16)
        for t in range(h.shape[1]):
            pooled = pooled + h[:, t]
        logits = self.fc(pooled / self.steps)
        print("logits", logits.mean().numpy())
        return {"logits": logits, "top": logits.argmax(-1).cpu().numpy()}

def build():
    net = Net()
    return net
