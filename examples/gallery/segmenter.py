"""Segmentation net for the mobile app. Works fine in the notebook!"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Segmenter(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.down = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(16)
        self.head = nn.Conv2d(16, classes, 1)
        self.classes = classes

    def forward(self, img):
        if img.max() > 1:          # uint8 pictures
            img = img / 255.0
        assert img.shape[1] == 3, "RGB please"
        f = F.relu(self.bn(self.down(img)))
        out = self.head(f)
        h = int(img.shape[2])
        out = F.interpolate(out, size=(h, 64), mode="bilinear")
        flat = out.view(4, self.classes, -1)
        return flat.softmax(1).view(4, self.classes, h, 64), out.argmax(1).numpy()
