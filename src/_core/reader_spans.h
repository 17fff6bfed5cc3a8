/* A cache in front of a Python dict: spans of text in, the numbers that the dict gave them out.

   The dict decides which texts are equal and what number a new one gets; the cache only saves asking again for text that is
   the same byte by byte. It can therefore be emptied at any time, which bounds its memory. */

#ifndef MINDTORCH_READER_SPANS_H
#define MINDTORCH_READER_SPANS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whether two texts are equal: as memcmp, without a call for texts that are mostly short. */
static inline int same_text(const uint8_t *one, const uint8_t *two, size_t length)
{
    uint64_t a, b;
    if (length < 8) {
        for (size_t i = 0; i < length; i++) {
            if (one[i] != two[i]) {
                return 0;
            }
        }
        return 1;
    }
    for (size_t i = 0; i + 8 < length; i += 8) {
        memcpy(&a, one + i, 8);
        memcpy(&b, two + i, 8);
        if (a != b) {
            return 0;
        }
    }
    memcpy(&a, one + length - 8, 8);
    memcpy(&b, two + length - 8, 8);
    return a == b;
}

typedef struct {
    const uint8_t *text;
    size_t length;
} span_t;

typedef struct {
    uint64_t hash;
    uint32_t place, length; /* of the text in `texts` */
    int32_t number;         /* -1: an empty slot */
} slot_t;

typedef struct {
    slot_t *slots;
    size_t capacity, count; /* capacity: a power of 2 */
    uint8_t *texts;
    size_t texts_length, texts_capacity;
} spans_t;

enum { SPAN_NEW = -1 };

void spans_free(spans_t *spans);

/* The hash of spans, which is to be passed to the two functions below. `seed` must not be known to who wrote the text. */
uint64_t spans_hash(uint64_t seed, const span_t *key, size_t count);

/* The number of a key of several spans; SPAN_NEW: it is not in the cache. */
int32_t spans_find(const spans_t *spans, uint64_t hash, const span_t *key, size_t count);

/* Add a key that is not in the cache. Where there is no memory for it, it stays out. */
void spans_add(spans_t *spans, uint64_t hash, const span_t *key, size_t count, int32_t number);

#endif
