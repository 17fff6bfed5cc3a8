#include "reader_spans.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 4 << 20, MOST_SLOTS = 1 << 17, FIRST_CAPACITY = 256 }; /* bytes of text, and texts, at which the cache is emptied; slots */

void spans_free(spans_t *spans)
{
    free(spans->slots);
    free(spans->texts);
    memset(spans, 0, sizeof *spans);
}

static inline uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

static inline uint64_t word_at(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

uint64_t spans_hash(uint64_t seed, const span_t *key, size_t count)
{
    uint64_t hash = seed;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = key[i].text;
        size_t length = key[i].length, place = 0;
        if (length >= 32) { /* two chains of multiplications run beside each other */
            uint64_t other = ~seed;
            for (; place + 16 <= length; place += 16) {
                hash = mixed(hash, word_at(p + place));
                other = mixed(other, word_at(p + place + 8));
            }
            hash = mixed(hash, other);
        }
        for (; place + 8 <= length; place += 8) {
            hash = mixed(hash, word_at(p + place));
        }
        uint64_t word = 0;
        for (; place < length; place++) {
            word = word << 8 | p[place];
        }
        hash = mixed(mixed(hash, word), length);
    }
    return hash ^ (hash >> 32);
}

/* Whether a stored text is that of a key: its spans with a 0 after each, which is in no JSON. */
static int is_equal(const uint8_t *stored, size_t stored_length, const span_t *key, size_t count)
{
    const uint8_t *end = stored + stored_length;
    for (size_t i = 0; i < count; i++) {
        if ((size_t)(end - stored) <= key[i].length || !same_text(stored, key[i].text, key[i].length)) {
            return 0;
        }
        stored += key[i].length;
        if (*stored++ != 0) {
            return 0;
        }
    }
    return stored == end;
}

int32_t spans_find(const spans_t *spans, uint64_t hash, const span_t *key, size_t count)
{
    if (spans->capacity == 0) {
        return SPAN_NEW;
    }
    for (size_t place = hash & (spans->capacity - 1);; place = (place + 1) & (spans->capacity - 1)) {
        const slot_t *slot = &spans->slots[place];
        if (slot->number < 0) {
            return SPAN_NEW;
        }
        if (slot->hash == hash && is_equal(spans->texts + slot->place, slot->length, key, count)) {
            return slot->number;
        }
    }
}

static void put(slot_t *slots, size_t capacity, slot_t slot)
{
    size_t place = slot.hash & (capacity - 1);
    while (slots[place].number >= 0) {
        place = (place + 1) & (capacity - 1);
    }
    slots[place] = slot;
}

/* Make room for one more slot, at most half of them being used; 0: no memory. */
static int grow_slots(spans_t *spans)
{
    if ((spans->count + 1) * 2 <= spans->capacity) {
        return 1;
    }
    size_t capacity = spans->capacity ? spans->capacity * 2 : FIRST_CAPACITY;
    slot_t *slots = malloc(capacity * sizeof *slots);
    if (slots == NULL) {
        return 0;
    }
    for (size_t place = 0; place < capacity; place++) {
        slots[place].number = -1;
    }
    for (size_t place = 0; place < spans->capacity; place++) {
        if (spans->slots[place].number >= 0) {
            put(slots, capacity, spans->slots[place]);
        }
    }
    free(spans->slots);
    spans->slots = slots;
    spans->capacity = capacity;
    return 1;
}

static int grow_texts(spans_t *spans, size_t more)
{
    size_t wanted = spans->texts_capacity ? spans->texts_capacity : 4096;
    while (wanted - spans->texts_length < more) {
        wanted *= 2;
    }
    if (wanted == spans->texts_capacity) {
        return 1;
    }
    uint8_t *texts = realloc(spans->texts, wanted);
    if (texts == NULL) {
        return 0;
    }
    spans->texts = texts;
    spans->texts_capacity = wanted;
    return 1;
}

void spans_add(spans_t *spans, uint64_t hash, const span_t *key, size_t count, int32_t number)
{
    size_t length = count;
    for (size_t i = 0; i < count; i++) {
        length += key[i].length;
    }
    if (length > MOST_TEXT / 8) {
        return;
    }
    if (spans->texts_length + length > MOST_TEXT || spans->count == MOST_SLOTS) {
        spans_free(spans);
    }
    if (!grow_slots(spans) || !grow_texts(spans, length)) {
        return;
    }
    uint8_t *text = spans->texts + spans->texts_length;
    slot_t slot = {hash, (uint32_t)spans->texts_length, (uint32_t)length, number};
    for (size_t i = 0; i < count; i++) {
        memcpy(text, key[i].text, key[i].length);
        text += key[i].length;
        *text++ = 0;
    }
    spans->texts_length += length;
    spans->count++;
    put(spans->slots, spans->capacity, slot);
}
