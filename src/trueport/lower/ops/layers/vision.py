"""torchvision's own operators: boxes, regions of interest, deformable convolution.

They are registered by name, so that nothing here needs torchvision; a model that calls them has it installed.
"""

from __future__ import annotations

import onnx_ir as ir

from trueport.lower.builder import Builder
from trueport.lower.table import op
from trueport.lower.tensor import Tensor

FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


@op("torchvision::nms")
def nms(op: Builder, dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor; ONNX compares in float32

    For torch a box whose corners are in the wrong order overlaps with nothing; ONNX puts them in order. So such a box
    is drawn together until it has no area, and overlaps with nothing there either.
    """
    dets, scores = op.cast(dets, FLOAT), op.cast(scores, FLOAT)
    first, last = op.many("Split", 2, dets, axis=1, num_outputs=2)
    boxes = op.Concat(first, op.Max(first, last), axis=1)
    count = op.Shape(scores)
    chosen = op.NonMaxSuppression(
        op.Unsqueeze(boxes, [0]), op.Unsqueeze(scores, [0, 1]), count, op.const([iou_threshold], FLOAT)
    )
    return op.Squeeze(op.Slice(chosen, [2], [3], [1]), [1])


@op("torchvision::roi_align")
def roi_align(
    op: Builder,
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,
    int sampling_ratio, bool aligned) -> Tensor
    """
    images, boxes = _regions(op, rois)
    return op.RoiAlign(
        input,
        boxes,
        images,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
    )


def _regions(op: Builder, rois: Tensor) -> tuple[Tensor, Tensor]:
    """Which image a region is in, and its corners: torch keeps both in one row of five."""
    images = op.cast(op.Squeeze(op.Slice(rois, [0], [1], [1]), [1]), INT64)
    return images, op.Slice(rois, [1], [5], [1])


@op("torchvision::ps_roi_align")
def ps_roi_align(
    op: Builder,
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor | None]:
    """ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,
    int sampling_ratio) -> (Tensor, Tensor)

    Every cell of the answer has channels of its own: of roi_align over all of them, cell i takes its i-th share.
    """
    _without_indices(op)
    cells = pooled_height * pooled_width
    every = roi_align(op, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned=True)
    regions, channels = rois.known_sizes[0], input.known_sizes[1]
    shares = op.reshape(every, [regions, channels // cells, cells * cells])
    own = op.Gather(shares, op.ints(*range(0, cells * cells, cells + 1)), axis=2)
    return op.reshape(own, [regions, channels // cells, pooled_height, pooled_width]), None


@op("torchvision::roi_pool")
def roi_pool(
    op: Builder, input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor | None]:
    """roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width)
    -> (Tensor, Tensor)
    """
    _without_indices(op)
    return op.MaxRoiPool(input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=spatial_scale), None


def _without_indices(op: Builder) -> None:
    """The second result is there for the gradient; torchvision's functions do not hand it on."""
    if op.wants(1):
        raise NotImplementedError("the indices that torchvision keeps for the gradient are not carried")


@op("torchvision::deform_conv2d")
def deform_conv2d(
    op: Builder,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h,
    SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups,
    SymInt offset_groups, bool use_mask) -> Tensor; since opset 19
    """
    return op.DeformConv(
        input,
        weight,
        offset,
        bias,
        mask if use_mask else None,
        strides=[stride_h, stride_w],
        pads=[pad_h, pad_w, pad_h, pad_w],
        dilations=[dilation_h, dilation_w],
        group=groups,
        offset_group=offset_groups,
    )
