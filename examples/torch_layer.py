#!/usr/bin/env python3
"""A convolution of this project as a PyTorch layer. Gradient descent finds the filter that produced an image.

    python3 examples/torch_layer.py          on a GPU if the module and PyTorch support it, otherwise on the CPU
"""
import convladder
import torch


# [layer]
def memory_format(x):
    """The memory format of a tensor: gradients are computed in that of the layer's input."""
    return torch.contiguous_format if x.is_contiguous() else torch.channels_last


class Conv2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, pad):
        ctx.save_for_backward(x, w)
        ctx.pad = pad
        return convladder.conv2d(x, w, pad=pad)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dy = dy.contiguous(memory_format=memory_format(x))
        dx = convladder.conv2d_dgrad(dy, w, x.shape, pad=ctx.pad)
        dw, _ = convladder.conv2d_wgrad(x, dy, w.shape[2:], pad=ctx.pad)
        return dx, dw, None  # no gradient for pad
# [layer]


def place():
    """The device that both support."""
    rungs_there = any("gpu" in row["where"] for row in convladder.rungs())
    return "cuda" if rungs_there and torch.cuda.is_available() else "cpu"


def learned(steps=60, device="cpu"):
    """Returns (the filter to find, the filter that gradient descent found), both [1][1][3][3]."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, 1, 24, 24, generator=generator).to(device)
    sobel = torch.tensor([[[[1., 0, -1], [2, 0, -2], [1, 0, -1]]]], device=device)
    wanted = torch.nn.functional.conv2d(x, sobel, padding=1)
    w = torch.zeros_like(sobel, requires_grad=True)
    for _ in range(steps):
        loss = (Conv2d.apply(x, w, 1) - wanted).square().mean()
        gradient, = torch.autograd.grad(loss, w)
        w = (w - 0.3 * gradient).detach().requires_grad_()
    return sobel, w.detach()


if __name__ == "__main__":
    there = place()
    right, found = learned(device=there)
    print(f"Computed on {there}. The filter found by gradient descent:\n{found[0, 0].cpu().numpy().round(3)}")
    print(f"It is {float((found - right).abs().max()):.1g} away from the original filter.")
