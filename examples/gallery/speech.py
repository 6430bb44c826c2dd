import numpy as np
import torch
import torch.nn as nn


class SpeechFront(nn.Module):
    """log-mel + small classifier"""

    def __init__(self):
        super().__init__()
        self.mel = torch.rand(40, 201)
        self.fc = nn.Linear(40, 10)
        self.noise = 0.1

    def forward(self, wav):
        wav = wav + self.noise * torch.randn_like(wav)
        spec = torch.stft(wav, 400, 160, window=torch.hann_window(400), return_complex=True)
        power = spec.abs() ** 2
        mel = np.log(np.maximum((self.mel @ power).detach().numpy(), 1e-10))
        mel = torch.from_numpy(mel)
        return self.fc(mel.transpose(1, 2)).mean(1)
