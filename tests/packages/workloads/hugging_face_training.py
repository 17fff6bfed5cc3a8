"""Workloads of Hugging Face's packages that train, save and load small models with tokenizers made on the spot."""

from __future__ import annotations

import tempfile
from typing import Any

from ._programs import data, network, numbers

__all__ = [
    "accelerate_accumulation", "accelerate_state", "diffusers_ddim", "diffusers_training", "diffusers_vae", "peft_lora_language_model",
    "peft_other_methods", "sentence_transformers_training", "transformers_attention_kinds", "transformers_autocast", "transformers_clip",
    "transformers_encoder_decoder", "transformers_families", "transformers_generation", "transformers_pipeline", "trl_dpo", "trl_sft",
]  # fmt: skip

_SENTENCES = (
    "the cat sat on the mat", "a dog ran in the park", "birds fly over the sea", "the sun is hot today",
    "we like green tea", "trains run on time here", "rain falls on the hills", "music fills the small room",
)  # fmt: skip


def _tokenizer() -> Any:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<unk>", "<eos>", *sorted({word for text in _SENTENCES for word in text.split()})]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>", bos_token="<eos>"
    )


def _gpt2(vocabulary: int = 50) -> Any:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        n_embd=16, n_layer=2, n_head=2, n_positions=64, vocab_size=vocabulary, bos_token_id=2, eos_token_id=2, pad_token_id=0,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def transformers_generation() -> dict[str, Any]:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessorList, MinLengthLogitsProcessor

    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, vocab_size=60,
            bos_token_id=1, eos_token_id=2, pad_token_id=0,
        )
    ).eval()  # fmt: skip
    prompt = torch.tensor([[0, 1, 5, 6], [1, 7, 8, 9]])
    common = {"attention_mask": (prompt != 0).long(), "max_new_tokens": 6}
    nucleus = {"do_sample": True, "top_p": 0.9, "temperature": 0.7}
    torch.manual_seed(3)
    sampled = model.generate(prompt, **nucleus, num_return_sequences=2, **common)
    scored = model.generate(
        prompt, return_dict_in_generate=True, output_scores=True, do_sample=False, **common
    )
    transition = model.compute_transition_scores(scored.sequences, scored.scores, normalize_logits=True)
    limited = model.generate(
        prompt, do_sample=False, repetition_penalty=1.3, no_repeat_ngram_size=2,
        logits_processor=LogitsProcessorList([MinLengthLogitsProcessor(8, 2)]), **common,
    )  # fmt: skip
    beams = model.generate(
        prompt, num_beams=4, num_return_sequences=2, length_penalty=0.5, do_sample=False, **common
    )
    without_cache = model.generate(prompt, do_sample=False, use_cache=False, **common)
    return {
        "sampled": sampled.tolist(), "transition": numbers(transition), "limited": limited.tolist(), "beams": beams.tolist(),
        "same_without_cache": bool((without_cache == scored.sequences).all()),
    }  # fmt: skip


def transformers_families() -> dict[str, Any]:
    import torch
    import transformers as hf

    small = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 60, "pad_token_id": 0,
    }  # fmt: skip
    kinds = {
        "Roberta": {}, "Electra": {"embedding_size": 16}, "DebertaV2": {}, "Mistral": {"num_key_value_heads": 2}, "Qwen2": {"num_key_value_heads": 2},
        "GPTNeoX": {}, "Phi": {}, "Gemma": {"num_key_value_heads": 1, "head_dim": 8}, "Mixtral": {"num_key_value_heads": 2, "num_local_experts": 4},
        "OPT": {"ffn_dim": 48, "word_embed_proj_dim": 32}, "Bloom": {"n_head": 4, "n_layer": 2},
    }  # fmt: skip
    results: dict[str, Any] = {}
    for name, extra in kinds.items():
        torch.manual_seed(0)
        config = getattr(hf, f"{name}Config")(**{**small, **extra})
        kind = getattr(hf, f"{name}ForCausalLM", None)
        if name in ("Roberta", "Electra", "DebertaV2"):
            kind = getattr(hf, f"{name}ForTokenClassification")
        model = kind(config).eval()
        tokens = torch.arange(3, 15).view(2, 6)
        output = model(tokens, attention_mask=torch.ones_like(tokens))
        output.logits.square().mean().backward()
        results[name] = [
            output.logits.double().sum().item(),
            sum(p.grad.double().abs().sum().item() for p in model.parameters() if p.grad is not None),
        ]
    return results


def transformers_attention_kinds() -> dict[str, Any]:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    results = {}
    for kind in ("eager", "sdpa", "flex_attention"):
        torch.manual_seed(0)
        config = LlamaConfig(
            hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=60
        )
        config._attn_implementation = kind
        model = LlamaForCausalLM(config).eval()
        tokens = torch.arange(3, 15).view(2, 6)
        mask = torch.ones_like(tokens)
        mask[0, :2] = 0
        with torch.no_grad():  # torch's flex attention has no backward on a CPU
            results[kind] = numbers(model(tokens, attention_mask=mask).logits[:, -1, :4])
    return results


def transformers_encoder_decoder() -> dict[str, Any]:
    import torch
    from transformers import (
        BartConfig,
        BartForConditionalGeneration,
        WhisperConfig,
        WhisperForConditionalGeneration,
    )

    torch.manual_seed(0)
    sizes = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": 60,
    }  # fmt: skip
    bart = BartForConditionalGeneration(BartConfig(**sizes, max_position_embeddings=32)).eval()
    tokens = torch.arange(4, 14).view(2, 5)
    output = bart(input_ids=tokens, labels=tokens)
    output.loss.backward()
    generated = bart.generate(tokens, num_beams=2, max_new_tokens=5, min_length=3)
    whisper = WhisperForConditionalGeneration(
        WhisperConfig(
            **sizes, num_mel_bins=8, max_source_positions=16, max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            decoder_start_token_id=1, suppress_tokens=[], begin_suppress_tokens=[],
        )
    ).eval()  # fmt: skip
    speech = whisper(input_features=torch.randn(1, 8, 32), decoder_input_ids=torch.tensor([[1, 5, 6]]))
    return {
        "loss": output.loss.item(), "gradient": bart.model.shared.weight.grad.norm().item(), "generated": generated.tolist(),
        "speech": numbers(speech.logits[0, -1, :5]),
    }  # fmt: skip


def transformers_clip() -> dict[str, Any]:
    import torch
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(0)
    common = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    }  # fmt: skip
    model = CLIPModel(
        CLIPConfig(
            text_config={**common, "vocab_size": 60, "eos_token_id": 59, "max_position_embeddings": 16},
            vision_config={**common, "image_size": 32, "patch_size": 8}, projection_dim=16,
        )
    ).eval()  # fmt: skip
    output = model(
        input_ids=torch.arange(10).view(2, 5), pixel_values=torch.randn(2, 3, 32, 32), return_loss=True
    )
    output.loss.backward()
    return {"loss": output.loss.item(), "logits": numbers(output.logits_per_image)}


def transformers_autocast() -> dict[str, Any]:
    import torch

    model = _gpt2()
    tokens = torch.arange(3, 15).view(2, 6)
    model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(round(loss.item(), 1))
    return {"losses": losses}


def transformers_pipeline() -> dict[str, Any]:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, pipeline

    torch.manual_seed(0)
    tokenizer = _tokenizer()
    model = BertForSequenceClassification(
        BertConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=60
        )
    )
    classified = pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu")(
        list(_SENTENCES[:3]), batch_size=2
    )
    with tempfile.TemporaryDirectory() as folder:
        language_model = _gpt2(60)
        language_model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        text = pipeline("text-generation", model=folder, device="cpu")(
            "the cat", do_sample=False, max_new_tokens=4
        )
    return {
        "classified": [row["score"] for row in classified],
        "text": text[0]["generated_text"],
    }


def _text_dataset() -> Any:
    from datasets import Dataset

    return Dataset.from_dict({"text": list(_SENTENCES)})


def _log(trainer: Any, key: str = "loss") -> list[float]:
    return [float(row[key]) for row in trainer.state.log_history if key in row]


_TRAINING = {
    "max_steps": 3, "per_device_train_batch_size": 2, "logging_steps": 1, "report_to": [], "disable_tqdm": True, "use_cpu": True, "seed": 3,
    "save_strategy": "no", "learning_rate": 1e-2,
}  # fmt: skip


def trl_sft() -> dict[str, Any]:
    from peft import LoraConfig
    from trl import SFTConfig, SFTTrainer

    with tempfile.TemporaryDirectory() as folder:
        options = SFTConfig(folder, **_TRAINING, max_length=16, bf16=False, gradient_checkpointing=False)
        full = SFTTrainer(_gpt2(), options, train_dataset=_text_dataset(), processing_class=_tokenizer())
        full.train()
        lora = SFTTrainer(
            _gpt2(), options, train_dataset=_text_dataset(), processing_class=_tokenizer(),
            peft_config=LoraConfig(r=2, target_modules=["c_attn"], task_type="CAUSAL_LM"),
        )  # fmt: skip
        lora.train()
    return {"full": _log(full), "lora": _log(lora)}


def trl_dpo() -> dict[str, Any]:
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    rows = Dataset.from_dict(
        {
            "prompt": ["the cat ", "a dog ", "birds ", "we "],
            "chosen": ["sat on the mat", "ran in the park", "fly over the sea", "like green tea"],
            "rejected": ["fly", "tea tea", "sat", "the the"],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        options = DPOConfig(folder, **_TRAINING, max_length=16, bf16=False, gradient_checkpointing=False)
        trainer = DPOTrainer(_gpt2(), _gpt2(), options, train_dataset=rows, processing_class=_tokenizer())
        trainer.train()
    return {"losses": _log(trainer), "margins": _log(trainer, "rewards/margins")}


def peft_lora_language_model() -> dict[str, Any]:
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model

    model = get_peft_model(
        _gpt2(), LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], task_type="CAUSAL_LM")
    )
    tokens = torch.arange(3, 15).view(2, 6)
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=0.05)
    losses = []
    for _ in range(3):
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = PeftModel.from_pretrained(_gpt2(), folder).eval()
    with model.disable_adapter():
        without = model(tokens).logits[0, 0, :3]
    merged = model.merge_and_unload().eval()
    return {
        "losses": losses, "parameters": sum(p.numel() for p in loaded.parameters()),
        "loaded": numbers(loaded(tokens).logits[0, 0, :3]), "merged": numbers(merged(tokens).logits[0, 0, :3]), "without": numbers(without),
    }  # fmt: skip


def peft_other_methods() -> dict[str, Any]:
    import torch
    from peft import IA3Config, LoHaConfig, LoraConfig, PrefixTuningConfig, PromptTuningConfig, get_peft_model

    tokens = torch.arange(3, 15).view(2, 6)
    configs = {
        "ia3": IA3Config(target_modules=["c_attn", "mlp.c_proj"], feedforward_modules=["mlp.c_proj"], task_type="CAUSAL_LM"),
        "prompt": PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
        "prefix": PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
        "dora": LoraConfig(r=2, target_modules=["c_attn"], use_dora=True, task_type="CAUSAL_LM"),
    }  # fmt: skip
    results = {}
    for name, config in configs.items():
        model = get_peft_model(_gpt2(), config)
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        results[name] = [
            loss.item(), sum(p.grad.norm().item() for p in model.parameters() if p.grad is not None)
        ]  # fmt: skip
    small = get_peft_model(network(), LoHaConfig(r=2, target_modules=["0"]))
    results["loha"] = numbers(small(data()[0])[:2])
    return results


def _sentence_model() -> Any:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel

    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        BertModel(
            BertConfig(
                hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=60, hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            )
        ).save_pretrained(folder)  # fmt: skip
        _tokenizer().save_pretrained(folder)
        words = Transformer(folder, max_seq_length=16)
    return SentenceTransformer(modules=[words, Pooling(32), Normalize()], device="cpu")


def sentence_transformers_training() -> dict[str, Any]:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.losses import MultipleNegativesRankingLoss
    from sentence_transformers.util import semantic_search

    model = _sentence_model()
    before = model.encode(list(_SENTENCES[:2]), convert_to_tensor=True)
    rows = Dataset.from_dict({"anchor": list(_SENTENCES[:4]), "positive": list(_SENTENCES[4:])})
    with tempfile.TemporaryDirectory() as folder:
        trainer = SentenceTransformerTrainer(
            model, SentenceTransformerTrainingArguments(folder, **_TRAINING), train_dataset=rows,
            loss=MultipleNegativesRankingLoss(model),
        )  # fmt: skip
        trainer.train()
        model.save(folder)
        from sentence_transformers import SentenceTransformer

        loaded = SentenceTransformer(folder, device="cpu")
    after = loaded.encode(list(_SENTENCES), convert_to_tensor=True, batch_size=3)
    matches = semantic_search(after[:2], after, top_k=2)
    return {
        "before": numbers(before[:, :4]), "losses": _log(trainer), "after": numbers(after[:2, :4]),
        "matches": [[row["corpus_id"] for row in rows] for rows in matches],
    }  # fmt: skip


def accelerate_accumulation() -> dict[str, Any]:
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*data()), batch_size=4, shuffle=True,
        generator=torch.Generator().manual_seed(5),
    )  # fmt: skip
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    losses, synchronized = [], []
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        synchronized.append(accelerator.sync_gradients)
    gathered = accelerator.gather_for_metrics(torch.tensor([1.0, 2.0]))
    return {
        "losses": losses, "synchronized": synchronized, "rate": scheduler.get_last_lr(), "gathered": numbers(gathered),
    }  # fmt: skip


def accelerate_state() -> dict[str, Any]:
    import torch
    from accelerate import Accelerator, cpu_offload, init_empty_weights, load_checkpoint_and_dispatch
    from accelerate.utils import compute_module_sizes, infer_auto_device_map

    accelerator = Accelerator(cpu=True)
    model = network()
    model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters(), lr=0.1))
    inputs, targets = data()
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        for step in range(4):
            if step == 2:
                accelerator.save_state(folder)
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        accelerator.load_state(folder)
        resumed = torch.nn.functional.cross_entropy(model(inputs), targets).item()
        accelerator.save_model(model, f"{folder}/model")
        with init_empty_weights():
            empty = network()
        device = str(next(empty.parameters()).device)
        loaded = load_checkpoint_and_dispatch(empty, f"{folder}/model", device_map={"": "cpu"})
        output = numbers(loaded(inputs[:1]))
    offloaded = cpu_offload(network(), execution_device=torch.device("cpu"))
    return {
        "losses": losses, "resumed": resumed, "device": device, "output": output, "offloaded": numbers(offloaded(inputs[:1])),
        "sizes": dict(compute_module_sizes(network())), "map": {k: str(v) for k, v in infer_auto_device_map(network(), {"cpu": 10**9}).items()},
    }  # fmt: skip


def _unet() -> Any:
    import torch
    from diffusers import UNet2DModel

    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=4,
    )  # fmt: skip


def diffusers_ddim() -> dict[str, Any]:
    import torch
    from diffusers import (
        DDIMPipeline,
        DDIMScheduler,
        DPMSolverMultistepScheduler,
        EulerDiscreteScheduler,
        PNDMScheduler,
    )  # fmt: skip

    images = DDIMPipeline(_unet(), DDIMScheduler(20))(
        batch_size=1, num_inference_steps=3, generator=torch.Generator().manual_seed(1), output_type="np"
    ).images
    samples = {}
    for kind in (EulerDiscreteScheduler, DPMSolverMultistepScheduler, PNDMScheduler):
        scheduler = kind(num_train_timesteps=20)
        scheduler.set_timesteps(4)
        sample = torch.ones(1, 1, 4, 4) * scheduler.init_noise_sigma
        for step in scheduler.timesteps:
            noise = torch.sin(scheduler.scale_model_input(sample, step) + step / 20)
            sample = scheduler.step(noise, step, sample).prev_sample
        samples[kind.__name__] = numbers(sample[0, 0, 0])
    return {"images": images.ravel().tolist(), **samples}


def diffusers_training() -> dict[str, Any]:
    import torch
    from diffusers import DDPMScheduler, UNet2DConditionModel
    from diffusers.optimization import get_cosine_schedule_with_warmup
    from diffusers.training_utils import EMAModel

    torch.manual_seed(0)
    model = UNet2DConditionModel(
        sample_size=8, in_channels=2, out_channels=2, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4, cross_attention_dim=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), attention_head_dim=4,
    )  # fmt: skip
    scheduler = DDPMScheduler(num_train_timesteps=10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rate = get_cosine_schedule_with_warmup(optimizer, 1, 4)
    average = EMAModel(model.parameters(), decay=0.5)
    clean, text = torch.randn(2, 2, 8, 8), torch.randn(2, 3, 8)
    losses = []
    for _ in range(3):
        noise = torch.randn(clean.shape)
        steps = torch.randint(0, 10, (2,))
        prediction = model(scheduler.add_noise(clean, noise, steps), steps, encoder_hidden_states=text).sample
        loss = torch.nn.functional.mse_loss(prediction, noise)
        loss.backward()
        optimizer.step()
        rate.step()
        optimizer.zero_grad()
        average.step(model.parameters())
        losses.append(loss.item())
    return {"losses": losses, "average": sum(p.double().abs().sum().item() for p in average.shadow_params)}


def diffusers_vae() -> dict[str, Any]:
    import torch
    from diffusers import AutoencoderKL

    torch.manual_seed(0)
    model = AutoencoderKL(
        block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4, latent_channels=2, sample_size=16,
    )  # fmt: skip
    posterior = model.encode(torch.randn(1, 3, 16, 16)).latent_dist
    image = model.decode(posterior.sample(torch.Generator().manual_seed(2))).sample
    loss = image.square().mean() + 0.1 * posterior.kl().mean()
    loss.backward()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        same = AutoencoderKL.from_pretrained(folder)
    return {
        "loss": loss.item(), "image": numbers(image[0, 0, 0]),
        "loaded": same.decode(torch.ones(1, 2, 8, 8)).sample.double().sum().item(),
    }  # fmt: skip
