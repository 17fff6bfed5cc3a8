"""Workloads of Hugging Face's packages."""

from __future__ import annotations

import tempfile
from typing import Any

from ._programs import data, network, numbers, train

__all__ = [
    "accelerate", "diffusers", "peft", "safetensors", "sentence_transformers", "transformers_bert", "transformers_gpt2", "transformers_llama",
    "transformers_t5", "transformers_trainer", "transformers_vit", "trl",
]  # fmt: skip

_SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 50,
}


def transformers_bert() -> dict[str, Any]:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**_SMALL)).eval()
    output = model(torch.arange(12).view(2, 6), labels=torch.tensor([0, 1]))
    output.loss.backward()
    return {
        "loss": output.loss.item(),
        "logits": numbers(output.logits),
        "gradient": model.bert.embeddings.word_embeddings.weight.grad.norm().item(),
    }


def transformers_gpt2() -> dict[str, Any]:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        n_embd=32, n_layer=2, n_head=2, vocab_size=50, bos_token_id=0, eos_token_id=49, pad_token_id=49
    )
    model = GPT2LMHeadModel(config).eval()
    prompt = torch.tensor([[1, 2, 3]])
    options = {"max_new_tokens": 8, "attention_mask": torch.ones_like(prompt)}
    greedy = model.generate(prompt, do_sample=False, **options)
    torch.manual_seed(1)
    sampled = model.generate(prompt, do_sample=True, top_k=10, **options)
    beams = model.generate(prompt, num_beams=3, do_sample=False, **options)
    return {"greedy": greedy.tolist(), "sampled": sampled.tolist(), "beams": beams.tolist()}


def transformers_llama() -> dict[str, Any]:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**_SMALL, num_key_value_heads=1)).eval()
    output = model(torch.arange(8).view(1, 8), labels=torch.arange(8).view(1, 8))
    output.loss.backward()
    return {"loss": output.loss.item(), "gradient": model.lm_head.weight.grad.norm().item()}


def transformers_t5() -> dict[str, Any]:
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=2, vocab_size=50, decoder_start_token_id=0
    )
    model = T5ForConditionalGeneration(config).eval()
    output = model(input_ids=torch.arange(8).view(1, 8), labels=torch.arange(4).view(1, 4))
    return {"loss": output.loss.item(), "logits": numbers(output.logits[0, 0])}


def transformers_vit() -> dict[str, Any]:
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    sizes = {key: value for key, value in _SMALL.items() if key != "vocab_size"}
    model = ViTForImageClassification(ViTConfig(**sizes, image_size=16, patch_size=8)).eval()
    return {"logits": numbers(model(torch.randn(2, 3, 16, 16)).logits)}


def transformers_trainer() -> dict[str, Any]:
    import torch
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    class Profile(TrainerCallback):
        def __init__(self) -> None:
            self.profile = torch.profiler.profile()

        def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
            self.profile.__enter__()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            self.profile.step()

        def on_train_end(self, *args: Any, **kwargs: Any) -> None:
            self.profile.__exit__(None, None, None)

    def trainer(folder: str, steps: int, callbacks: Any = None) -> Any:
        torch.manual_seed(0)
        model = BertForSequenceClassification(BertConfig(**_SMALL))
        rows = [{"input_ids": [i, i + 1, i + 2], "labels": i % 2} for i in range(16)]
        arguments = TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=4, save_steps=2, logging_steps=1, report_to=[],
            disable_tqdm=True, use_cpu=True, seed=3,
        )  # fmt: skip
        return Trainer(model, arguments, train_dataset=rows, callbacks=callbacks)

    with tempfile.TemporaryDirectory() as folder:
        callback = Profile()
        first = trainer(folder, 4, [callback])
        result = first.train()
        resumed = trainer(folder, 6)
        resumed.train(resume_from_checkpoint=True)
        linear = next(row for row in callback.profile.key_averages() if row.key == "aten::addmm")
        return {
            "loss": result.training_loss,
            "resumed": [row["loss"] for row in resumed.state.log_history if "loss" in row],
            "addmm": linear.count,
        }


def peft() -> dict[str, Any]:
    import torch
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(network(), LoraConfig(r=2, target_modules=["0"], init_lora_weights="gaussian"))
    losses = train(model, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5))
    merged = model.merge_and_unload()
    return {"losses": losses, "merged": numbers(merged(data()[0])[:2])}


def trl() -> dict[str, Any]:
    import torch
    from trl.trainer.utils import selective_log_softmax

    torch.manual_seed(0)
    return {
        "log_probabilities": numbers(
            selective_log_softmax(torch.randn(2, 3, 5), torch.tensor([[0, 1, 2], [3, 4, 0]]))
        )
    }


def sentence_transformers() -> dict[str, Any]:
    import torch
    from sentence_transformers.losses import CosineSimilarityLoss
    from sentence_transformers.util import cos_sim, mine_hard_negatives  # noqa: F401  (imported as programs do)

    torch.manual_seed(0)
    return {
        "similarity": numbers(cos_sim(torch.randn(3, 4), torch.randn(2, 4))),
        "loss": CosineSimilarityLoss.__name__,
    }


def accelerate() -> dict[str, Any]:
    import torch
    from accelerate import Accelerator, ProfileKwargs
    from accelerate.utils import set_seed

    set_seed(0)
    accelerator = Accelerator(
        cpu=True, kwargs_handlers=[ProfileKwargs(activities=["cpu"], record_shapes=True)]
    )
    model = network()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data()), batch_size=8)
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=0.01), loader
    )
    losses = []
    with accelerator.profile() as profile:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            losses.append(loss.item())
    return {
        "losses": losses,
        "addmm": next(r.count for r in profile.key_averages() if r.key == "aten::addmm"),
    }


def diffusers() -> dict[str, Any]:
    import torch
    from diffusers import DDPMScheduler, UNet2DModel

    torch.manual_seed(0)
    model = UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=4,
    )  # fmt: skip
    scheduler = DDPMScheduler(num_train_timesteps=10)
    sample = torch.randn(1, 1, 8, 8)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for step in scheduler.timesteps[:3]:
            sample = scheduler.step(model(sample, step).sample, step, sample, generator=generator).prev_sample
    return {"sample": numbers(sample)}


def safetensors() -> dict[str, Any]:
    import os

    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    tensors = {
        "a": torch.arange(6.0).view(2, 3),
        "b": torch.ones(2, dtype=torch.bfloat16),
        "c": torch.tensor([1.5]).to(torch.float8_e4m3fn),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.safetensors")
        save_file(tensors, path)
        loaded = load_file(path)
        with safe_open(path, "pt") as file:
            part = file.get_slice("a")[:, 1:]
    return {"sums": [loaded[name].float().sum().item() for name in sorted(loaded)], "part": numbers(part)}
