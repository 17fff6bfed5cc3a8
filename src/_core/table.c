/* A table from sequences of integers to numbers: open addressing, keys in one growing block. Nothing is ever removed. */

#include "recorder.h"

#include <string.h>

uint64_t hash_words(const int64_t *words, size_t length)
{
    uint64_t hash = 0x9E3779B97F4A7C15u ^ length;
    for (size_t i = 0; i < length; i++) {
        hash ^= (uint64_t)words[i];
        hash *= 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    return hash;
}

static Slot *slot_of(const Table *table, const int64_t *words, size_t length, uint64_t hash)
{
    size_t place = hash & (table->n_slots - 1);
    while (true) {
        Slot *slot = &table->slots[place];
        if (slot->length == 0)
            return slot;
        if (slot->hash == hash && slot->length == length
            && memcmp(table->words + slot->first, words, length * sizeof(int64_t)) == 0)
            return slot;
        place = (place + 1) & (table->n_slots - 1);
    }
}

const int64_t *table_get(const Table *table, const int64_t *words, size_t length, uint64_t hash)
{
    if (table->n_slots == 0)
        return NULL;
    Slot *slot = slot_of(table, words, length, hash);
    return slot->length == 0 ? NULL : &slot->value;
}

static int grow_slots(Table *table)
{
    Table larger = *table;
    larger.n_slots = table->n_slots == 0 ? 64 : table->n_slots * 2;
    larger.slots = PyMem_RawCalloc(larger.n_slots, sizeof(Slot));
    if (larger.slots == NULL)
        return -1;
    for (size_t i = 0; i < table->n_slots; i++) {
        Slot *slot = &table->slots[i];
        if (slot->length != 0)
            *slot_of(&larger, table->words + slot->first, slot->length, slot->hash) = *slot;
    }
    PyMem_RawFree(table->slots);
    *table = larger;
    return 0;
}

/* -1 without memory: the key is then not in the table, which is no error of the caller. */
int table_set(Table *table, const int64_t *words, size_t length, uint64_t hash, int64_t value)
{
    if (table->n_used * 2 >= table->n_slots && grow_slots(table) < 0)
        return -1;
    if (table->words_capacity - table->n_words < length) {
        size_t capacity = table->words_capacity * 2 + length + 256;
        int64_t *larger = PyMem_RawRealloc(table->words, capacity * sizeof(int64_t));
        if (larger == NULL)
            return -1;
        table->words = larger;
        table->words_capacity = capacity;
    }
    Slot *slot = slot_of(table, words, length, hash);
    if (slot->length == 0) {
        memcpy(table->words + table->n_words, words, length * sizeof(int64_t));
        *slot = (Slot){hash, table->n_words, length, value};
        table->n_words += length;
        table->n_used++;
    } else
        slot->value = value;
    return 0;
}

void table_free(Table *table)
{
    PyMem_RawFree(table->slots);
    PyMem_RawFree(table->words);
    *table = (Table){0};
}
