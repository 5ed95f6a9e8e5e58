from __future__ import annotations

import pytest

from kdsl.frontends.triton.problems import Problem
from kdsl.frontends.triton.types import Descriptor, Opaque, Pointer, Scalar, Tensor, parse_type


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("f8E4M3FN", Scalar("f8E4M3FN")),
        ("tensor<f32>", Tensor((), Scalar("f32"))),
        ("tensor<64x1xbf16>", Tensor((64, 1), Scalar("bf16"))),
        ("tensor<8x!tt.ptr<i1>>", Tensor((8,), Pointer(Scalar("i1")))),
        ("!tt.ptr<!tt.ptr<f16>>", Pointer(Pointer(Scalar("f16")))),
        ("!tt.ptr<f32, 3>", Pointer(Scalar("f32"), 3)),
        ("!tt.ptr<tensor<4x4xf32>>", Pointer(Tensor((4, 4), Scalar("f32")))),
        ("!tt.tensordesc<16x64xsi32>", Descriptor((16, 64), Scalar("si32"))),
        ("!ttg.memdesc<4xf32, #shared>", Opaque("!ttg.memdesc<4xf32, #shared>")),
    ],
)
def test_types_are_read_and_print_as_written(text: str, type: object) -> None:
    assert parse_type(text) == type
    assert str(parse_type(text)) == text


def test_a_descriptor_of_a_tensor_type_is_one_of_its_blocks() -> None:
    assert parse_type("!tt.tensordesc<tensor<8x32xf16>>") == Descriptor((8, 32), Scalar("f16"))


@pytest.mark.parametrize("text", ["float", "tensor<4x>", "tensor<4xtensor>", "!tt.ptr<>", "tensor<2048x1024xi8>", ""])
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        parse_type(text)
