#include "reader_json.h"
#include "reader_spans.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEEPEST = 64,           /* levels of nesting in an argument */
    MOST_CATEGORIES = 64,
    MOST_NODES = 8192,
    MOST_CHILDREN = 128,    /* of one node: they are compared one by one */
    MOST_ARGUMENTS = 256,
    LONGEST_KEY = 4096,     /* bytes; also of a category */
    EXACT_DIGITS = 19,      /* digits that a mantissa of 64 bits always holds */
    INT_DIGITS = 18,        /* digits that an integer of 64 bits always holds */
    FINITE_DIGITS = 300,    /* a number of so many digits and no exponent is finite */
    EXPONENT_DIGITS = 60,   /* with an exponent of at most LARGEST_EXPONENT, one of so many */
    LARGEST_EXPONENT = 200,
    SMALLEST_SCALE = -18    /* 10**18 has less than 60 bits, see `quotient` */
};

/* ---------------------------------------------------------------------------------------------------- memory */

/* Make room for one more element; 0: no memory. */
static int grow(void **items, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity) {
        return 1;
    }
    size_t wanted = *capacity ? *capacity * 2 : 256;
    if (wanted > SIZE_MAX / size) {
        return 0;
    }
    void *larger = realloc(*items, wanted * size);
    if (larger == NULL) {
        return 0;
    }
    *items = larger;
    *capacity = wanted;
    return 1;
}

/* Copy text to the keys, to compare with it in later slices; its place, or UINT32_MAX where there is no memory. */
static uint32_t keep(tokens_t *tokens, const uint8_t *text, size_t length)
{
    while (tokens->keys_capacity - tokens->keys_length < length) {
        if (!grow((void **)&tokens->keys, &tokens->keys_capacity, tokens->keys_capacity, 1)) {
            return UINT32_MAX;
        }
    }
    if (length > 0) { /* there may be no memory yet */
        memcpy(tokens->keys + tokens->keys_length, text, length);
    }
    size_t place = tokens->keys_length;
    tokens->keys_length += length;
    return (uint32_t)place;
}

static int32_t new_node(tokens_t *tokens, int32_t parent, const uint8_t *key, size_t length, int escaped)
{
    if (!grow((void **)&tokens->nodes, &tokens->node_capacity, tokens->node_count, sizeof(node_t))) {
        return -1;
    }
    node_t *node = &tokens->nodes[tokens->node_count];
    memset(node, 0, sizeof *node);
    node->key_start = keep(tokens, key, length);
    if (node->key_start == UINT32_MAX) {
        return -1;
    }
    node->key_length = (uint32_t)length;
    node->parent = parent;
    node->first_child = node->sibling = node->recent = node->layout = -1;
    node->escaped = (uint8_t)escaped;
    int32_t number = (int32_t)tokens->node_count++;
    if (parent >= 0) {
        node_t *above = &tokens->nodes[parent];
        node->depth = above->depth + 1;
        node->sibling = above->first_child;
        above->first_child = above->recent = number;
        above->children++;
    }
    return number;
}

static int32_t new_category(tokens_t *tokens, const uint8_t *text, size_t length)
{
    if (!grow((void **)&tokens->categories, &tokens->category_capacity, tokens->category_count, sizeof(category_t))) {
        return -1;
    }
    category_t *category = &tokens->categories[tokens->category_count];
    memset(category, 0, sizeof *category);
    category->start = keep(tokens, text, length);
    if (category->start == UINT32_MAX) {
        return -1;
    }
    category->length = (uint32_t)length;
    return (int32_t)tokens->category_count++;
}

int tokens_init(tokens_t *tokens)
{
    memset(tokens, 0, sizeof *tokens);
    tokens->groups = malloc(MOST_CATEGORIES * sizeof *tokens->groups);
    const uint8_t nothing = 0;
    if (tokens->groups == NULL || new_node(tokens, -1, &nothing, 0, 0) < 0 || new_category(tokens, &nothing, 0) < 0) {
        tokens_free(tokens);
        return TOKENS_NO_MEMORY;
    }
    return TOKENS_READ;
}

void tokens_free(tokens_t *tokens)
{
    free(tokens->events);
    free(tokens->values);
    free(tokens->nodes);
    free(tokens->keys);
    free(tokens->categories);
    free(tokens->groups);
    memset(tokens, 0, sizeof *tokens);
}

/* ---------------------------------------------------------------------------------------------------- strings */

static inline const uint8_t *skip_space(const uint8_t *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        p++;
    }
    return p;
}

static int hex_digits(const uint8_t *p)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i];
        int digit;
        if (c >= '0' && c <= '9') {
            digit = c - '0';
        }
        else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
            digit = (c | 32) - 'a' + 10;
        }
        else {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

/* The end of an escape that begins at the backslash p; NULL: it is none, or half of a surrogate pair. */
static const uint8_t *skip_escape(const uint8_t *p)
{
    switch (p[1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        return p + 2;
    case 'u':
        break;
    default:
        return NULL;
    }
    int unit = hex_digits(p + 2);
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) {
        return NULL;
    }
    if (unit < 0xD800 || unit > 0xDBFF) {
        return p + 6;
    }
    if (p[6] != '\\' || p[7] != 'u') {
        return NULL;
    }
    int low = hex_digits(p + 8);
    return low >= 0xDC00 && low <= 0xDFFF ? p + 12 : NULL;
}

/* The end of a character of more than one byte; NULL: it is no valid UTF-8. */
static const uint8_t *skip_wide(const uint8_t *p)
{
    uint8_t first = p[0];
    uint8_t low = 0x80, high = 0xBF; /* of the second byte */
    int more;
    if (first >= 0xC2 && first <= 0xDF) {
        more = 1;
    }
    else if (first >= 0xE0 && first <= 0xEF) {
        more = 2;
        low = first == 0xE0 ? 0xA0 : low;
        high = first == 0xED ? 0x9F : high;
    }
    else if (first >= 0xF0 && first <= 0xF4) {
        more = 3;
        low = first == 0xF0 ? 0x90 : low;
        high = first == 0xF4 ? 0x8F : high;
    }
    else {
        return NULL;
    }
    if (p[1] < low || p[1] > high) {
        return NULL;
    }
    for (int i = 2; i <= more; i++) {
        if (p[i] < 0x80 || p[i] > 0xBF) {
            return NULL;
        }
    }
    return p + more + 1;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define READ_WORDS 1
#else
#define READ_WORDS 0
#endif
#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* The closing quote of a string whose text begins at p; NULL: it is no valid string. */
static inline const uint8_t *string_end(const uint8_t *p, const uint8_t *limit, uint8_t *flags)
{
    for (;;) {
        /* eight bytes at a time, up to one that is a quote, a backslash, a control character, or not ASCII */
        while (READ_WORDS && limit - p >= 8) {
            uint64_t word;
            memcpy(&word, p, 8);
            uint64_t quote = word ^ EACH_BYTE('"'), backslash = word ^ EACH_BYTE('\\');
            uint64_t special = ((quote - EACH_BYTE(1)) & ~quote) | ((backslash - EACH_BYTE(1)) & ~backslash) |
                               ((word - EACH_BYTE(' ')) & ~word) | word;
            special &= EACH_BYTE(0x80);
            if (special) {
                p += __builtin_ctzll(special) >> 3;
                break;
            }
            p += 8;
        }
        uint8_t c = *p;
        if (c == '"') {
            return p;
        }
        if (c < ' ') {
            return NULL;
        }
        if (c == '\\') {
            *flags |= VALUE_ESCAPED;
            p = skip_escape(p);
        }
        else if (c >= 0x80) {
            p = skip_wide(p);
        }
        else {
            p++;
        }
        if (p == NULL) {
            return NULL;
        }
    }
}

/* ---------------------------------------------------------------------------------------------------- numbers */

/* The end of a number; NULL: it is none, or perhaps not finite. */
static inline const uint8_t *read_number(const uint8_t *p, value_t *value)
{
    int negative = *p == '-';
    p += negative;
    uint64_t mantissa = 0;
    const uint8_t *first = p;
    unsigned digit = (unsigned)*p - '0';
    if (digit > 9) {
        return NULL;
    }
    if (digit == 0) {
        p++;
        if ((unsigned)*p - '0' <= 9) {
            return NULL;
        }
    }
    else {
        while ((digit = (unsigned)*p - '0') <= 9) {
            mantissa = mantissa * 10 + digit;
            p++;
        }
    }
    ptrdiff_t digits = p - first;
    value->flags = negative ? VALUE_NEGATIVE : 0;
    if (*p != '.' && (*p | 32) != 'e') {
        /* -0 is no integer to some parsers */
        value->type = digits <= INT_DIGITS && !(negative && mantissa == 0) ? VALUE_INT : VALUE_NUMBER;
        if (value->type == VALUE_INT) {
            value->number.integer = negative ? -(int64_t)mantissa : (int64_t)mantissa;
        }
        return digits <= FINITE_DIGITS ? p : NULL;
    }
    ptrdiff_t exponent = 0;
    if (*p == '.') {
        const uint8_t *fraction = ++p;
        while ((digit = (unsigned)*p - '0') <= 9) {
            mantissa = mantissa * 10 + digit;
            p++;
        }
        if (p == fraction) {
            return NULL;
        }
        exponent = fraction - p;
        digits -= exponent;
    }
    if (digits > FINITE_DIGITS) {
        return NULL;
    }
    if ((*p | 32) == 'e') {
        p++;
        int below_one = *p == '-';
        p += *p == '-' || *p == '+';
        const uint8_t *power = p;
        int written = 0;
        while ((digit = (unsigned)*p - '0') <= 9) {
            written = written <= LARGEST_EXPONENT ? written * 10 + (int)digit : written;
            p++;
        }
        if (p == power || written > LARGEST_EXPONENT || digits > EXPONENT_DIGITS) {
            return NULL;
        }
        exponent += below_one ? -written : written;
    }
    value->number.mantissa = mantissa;
    value->exponent = (int16_t)exponent;
    value->type = digits <= EXACT_DIGITS && exponent <= 0 && exponent >= SMALLEST_SCALE ? VALUE_FLOAT : VALUE_NUMBER;
    return p;
}

static const uint64_t powers[] = {
    UINT64_C(1), UINT64_C(10), UINT64_C(100), UINT64_C(1000), UINT64_C(10000), UINT64_C(100000), UINT64_C(1000000),
    UINT64_C(10000000), UINT64_C(100000000), UINT64_C(1000000000), UINT64_C(10000000000), UINT64_C(100000000000),
    UINT64_C(1000000000000), UINT64_C(10000000000000), UINT64_C(100000000000000), UINT64_C(1000000000000000),
    UINT64_C(10000000000000000), UINT64_C(100000000000000000), UINT64_C(1000000000000000000),
};

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide_t;

/* The double nearest to dividend / divisor, of a dividend above 2**53 and a divisor below 2**60: the quotient of the dividend
   times 2**64 has 58 bits or more, so that its last bit can stand for all that is below it. */
static double quotient(uint64_t dividend, uint64_t divisor)
{
    wide_t scaled = (wide_t)dividend << 64;
    wide_t whole = scaled / divisor;
    int inexact = whole * divisor != scaled;
    int shift = 0;
    uint64_t high = (uint64_t)(whole >> 64);
    if (high) {
        shift = 64 - __builtin_clzll(high);
    }
    uint64_t top = (uint64_t)(whole >> shift);
    inexact |= ((wide_t)top << shift) != whole;
    return ldexp((double)(top | (uint64_t)inexact), shift - 64);
}
#endif

int real_value(const value_t *value, double *real)
{
    if (value->type == VALUE_INT) {
        *real = (double)value->number.integer;
        return 1;
    }
    if (value->type != VALUE_FLOAT) {
        return 0;
    }
    uint64_t mantissa = value->number.mantissa, divisor = powers[-value->exponent];
    double result;
    if (mantissa <= UINT64_C(1) << 53) {
        result = (double)mantissa / (double)divisor; /* both are exact */
    }
    else {
#ifdef __SIZEOF_INT128__
        result = quotient(mantissa, divisor);
#else
        return 0;
#endif
    }
    *real = value->flags & VALUE_NEGATIVE ? -result : result;
    return 1;
}

/* ---------------------------------------------------------------------------------------------------- values */

static const uint8_t *skip_container(const uint8_t *p, const uint8_t *limit, int depth);

/* The end of a value inside an array or object; NULL: it is not valid. */
static inline const uint8_t *skip_value(const uint8_t *p, const uint8_t *limit, int depth)
{
    value_t ignored;
    ignored.flags = 0;
    switch (*p) {
    case '"':
        p = string_end(p + 1, limit, &ignored.flags);
        return p == NULL ? NULL : p + 1;
    case '[': case '{':
        return depth < DEEPEST ? skip_container(p, limit, depth + 1) : NULL;
    case 't':
        return limit - p >= 4 && memcmp(p, "true", 4) == 0 ? p + 4 : NULL;
    case 'f':
        return limit - p >= 5 && memcmp(p, "false", 5) == 0 ? p + 5 : NULL;
    case 'n':
        return limit - p >= 4 && memcmp(p, "null", 4) == 0 ? p + 4 : NULL;
    default:
        return read_number(p, &ignored);
    }
}

static const uint8_t *skip_container(const uint8_t *p, const uint8_t *limit, int depth)
{
    int is_object = *p == '{';
    uint8_t closing = is_object ? '}' : ']', flags = 0;
    p = skip_space(p + 1);
    if (*p == closing) {
        return p + 1;
    }
    for (;;) {
        if (is_object) {
            if (*p != '"' || (p = string_end(p + 1, limit, &flags)) == NULL) {
                return NULL;
            }
            p = skip_space(p + 1);
            if (*p != ':') {
                return NULL;
            }
            p = skip_space(p + 1);
        }
        p = skip_value(p, limit, depth);
        if (p == NULL) {
            return NULL;
        }
        p = skip_space(p);
        if (*p == closing) {
            return p + 1;
        }
        if (*p != ',') {
            return NULL;
        }
        p = skip_space(p + 1);
    }
}

/* Read a value of an event or of its arguments; NULL: it is not valid. */
static inline const uint8_t *read_value(const tokens_t *tokens, const uint8_t *p, value_t *value)
{
    const uint8_t *start = p;
    value->flags = 0;
    switch (*p) {
    case '"':
        value->type = VALUE_STRING;
        p = string_end(p + 1, tokens->limit, &value->flags);
        p = p == NULL ? NULL : p + 1;
        break;
    case '[':
        value->type = VALUE_ARRAY;
        p = skip_container(p, tokens->limit, 1);
        break;
    case '{':
        value->type = VALUE_OBJECT;
        p = skip_container(p, tokens->limit, 1);
        break;
    case 't':
        value->type = VALUE_TRUE;
        p = skip_value(p, tokens->limit, 0);
        break;
    case 'f':
        value->type = VALUE_FALSE;
        p = skip_value(p, tokens->limit, 0);
        break;
    case 'n':
        value->type = VALUE_NULL;
        p = skip_value(p, tokens->limit, 0);
        break;
    default:
        p = read_number(p, value);
    }
    if (p != NULL) {
        value->start = (uint32_t)(start - tokens->text);
        value->length = (uint32_t)(p - start);
    }
    return p;
}

/* ---------------------------------------------------------------------------------------------------- events */

/* The child of a node with a key, whose text begins at `key` and ends with its closing quote at `quote`. -1: there are too many;
   -2: no memory. */
static int32_t child_of(tokens_t *tokens, int32_t parent, const uint8_t *key, const uint8_t *quote, int escaped)
{
    size_t length = (size_t)(quote - key) + 1;
    for (int32_t child = tokens->nodes[parent].first_child; child >= 0; child = tokens->nodes[child].sibling) {
        const node_t *node = &tokens->nodes[child];
        if (node->key_length == length && same_text(tokens->keys + node->key_start, key, length)) {
            tokens->nodes[parent].recent = child;
            return child;
        }
    }
    const node_t *above = &tokens->nodes[parent];
    if (tokens->node_count >= MOST_NODES || above->children >= MOST_CHILDREN || above->depth >= MOST_ARGUMENTS ||
        length > LONGEST_KEY) {
        return -1;
    }
    int32_t child = new_node(tokens, parent, key, length, escaped);
    return child < 0 ? -2 : child;
}

/* Read an array; most repeat the one that stood under the same key before. */
static inline const uint8_t *read_array(tokens_t *tokens, int32_t place, const uint8_t *p, value_t *value)
{
    node_t *node = &tokens->nodes[place];
    const uint8_t *end;
    if (node->slice == tokens->slice && (size_t)(tokens->limit - p) >= node->length &&
        same_text(p, tokens->text + node->start, node->length)) {
        end = p + node->length;
    }
    else {
        end = skip_container(p, tokens->limit, 1);
        if (end == NULL) {
            return NULL;
        }
        node->slice = tokens->slice;
        node->start = (uint32_t)(p - tokens->text);
        node->length = (uint32_t)(end - p);
    }
    value->type = VALUE_ARRAY;
    value->flags = 0;
    value->start = (uint32_t)(p - tokens->text);
    value->length = (uint32_t)(end - p);
    return end;
}

/* Read the arguments of an event: an object that begins at p. */
static const uint8_t *read_arguments(tokens_t *tokens, const uint8_t *p, event_t *event, int *status)
{
    const uint8_t *start = p;
    int32_t node = 0;
    event->first_value = (uint32_t)tokens->value_count;
    p = skip_space(p + 1);
    if (*p == '}') {
        p++;
    }
    else {
        for (;;) {
            if (*p != '"') {
                return NULL;
            }
            p++;
            /* the key that came next in the event before is the likely one */
            const node_t *likely = node < 0 || tokens->nodes[node].recent < 0 ? NULL : &tokens->nodes[tokens->nodes[node].recent];
            if (likely != NULL && (size_t)(tokens->limit - p) >= likely->key_length &&
                same_text(p, tokens->keys + likely->key_start, likely->key_length)) {
                p += likely->key_length;
                node = tokens->nodes[node].recent;
            }
            else {
                uint8_t flags = 0;
                const uint8_t *quote = string_end(p, tokens->limit, &flags);
                if (quote == NULL) {
                    return NULL;
                }
                if (node >= 0) {
                    node = child_of(tokens, node, p, quote, flags & VALUE_ESCAPED);
                    if (node == -2) {
                        *status = TOKENS_NO_MEMORY;
                        return NULL;
                    }
                }
                p = quote + 1;
            }
            p = skip_space(p);
            if (*p != ':') {
                return NULL;
            }
            p = skip_space(p + 1);
            if (!grow((void **)&tokens->values, &tokens->value_capacity, tokens->value_count, sizeof(value_t))) {
                *status = TOKENS_NO_MEMORY;
                return NULL;
            }
            value_t *value = &tokens->values[tokens->value_count++];
            p = *p == '[' && node >= 0 ? read_array(tokens, node, p, value) : read_value(tokens, p, value);
            if (p == NULL) {
                return NULL;
            }
            p = skip_space(p);
            if (*p == '}') {
                p++;
                break;
            }
            if (*p != ',') {
                return NULL;
            }
            p = skip_space(p + 1);
        }
    }
    event->node = node;
    event->args.type = VALUE_OBJECT;
    event->args.start = (uint32_t)(start - tokens->text);
    event->args.length = (uint32_t)(p - start);
    return p;
}

/* The number of a category; -1: there are too many, or it is no text. */
static int32_t category_of(tokens_t *tokens, const value_t *value, int *status)
{
    if (value->type == VALUE_MISSING || value->type == VALUE_NULL) {
        return 0;
    }
    if (value->type != VALUE_STRING || value->flags & VALUE_ESCAPED) {
        return -1;
    }
    const uint8_t *text = tokens->text + value->start + 1;
    size_t length = value->length - 2;
    const category_t *recent = &tokens->categories[tokens->recent_category];
    if (tokens->recent_category && recent->length == length && same_text(tokens->keys + recent->start, text, length)) {
        return tokens->recent_category;
    }
    for (size_t place = 1; place < tokens->category_count; place++) {
        const category_t *category = &tokens->categories[place];
        if (category->length == length && same_text(tokens->keys + category->start, text, length)) {
            return tokens->recent_category = (int32_t)place;
        }
    }
    if (tokens->category_count >= MOST_CATEGORIES || length > LONGEST_KEY) {
        return -1;
    }
    int32_t place = new_category(tokens, text, length);
    if (place < 0) {
        *status = TOKENS_NO_MEMORY;
        return -1;
    }
    return tokens->recent_category = place;
}

static void add_to_group(tokens_t *tokens, int32_t place, int32_t number)
{
    category_t *category = &tokens->categories[place];
    if (category->slice != tokens->slice) {
        category->slice = tokens->slice;
        category->first_event = number;
        category->count = 0;
        tokens->groups[tokens->group_count++] = place;
    }
    else {
        tokens->events[category->last_event].next = number;
    }
    category->last_event = number;
    category->count++;
}

enum { KEY_PH, KEY_CAT, KEY_NAME, KEY_PID, KEY_TID, KEY_TS, KEY_DUR, KEY_ARGS, KEY_OTHER };

/* Whether text begins with a key of three or four letters and its closing quote. The text ends with 0, so that none is read beyond. */
#define IS_KEY3(p, b, c) ((p)[1] == (b) && (p)[2] == (c) && (p)[3] == '"')
#define IS_KEY4(p, b, c, d) ((p)[1] == (b) && (p)[2] == (c) && (p)[3] == (d) && (p)[4] == '"')

/* The end of a key of an event whose text begins at p, and which key it is; NULL: it is not valid, or holds escapes. */
static inline const uint8_t *read_key(const uint8_t *p, const uint8_t *limit, int *key)
{
    switch (*p) {
    case 'p':
        if (p[1] == 'h' && p[2] == '"') {
            *key = KEY_PH;
            return p + 3;
        }
        if (IS_KEY3(p, 'i', 'd')) {
            *key = KEY_PID;
            return p + 4;
        }
        break;
    case 't':
        if (p[1] == 's' && p[2] == '"') {
            *key = KEY_TS;
            return p + 3;
        }
        if (IS_KEY3(p, 'i', 'd')) {
            *key = KEY_TID;
            return p + 4;
        }
        break;
    case 'c':
        if (IS_KEY3(p, 'a', 't')) {
            *key = KEY_CAT;
            return p + 4;
        }
        break;
    case 'd':
        if (IS_KEY3(p, 'u', 'r')) {
            *key = KEY_DUR;
            return p + 4;
        }
        break;
    case 'n':
        if (IS_KEY4(p, 'a', 'm', 'e')) {
            *key = KEY_NAME;
            return p + 5;
        }
        break;
    case 'a':
        if (IS_KEY4(p, 'r', 'g', 's')) {
            *key = KEY_ARGS;
            return p + 5;
        }
        break;
    default:
        break;
    }
    uint8_t flags = 0;
    p = string_end(p, limit, &flags);
    *key = KEY_OTHER;
    return p == NULL || flags ? NULL : p + 1;
}

/* Read an event: an object that begins at p, with a phase. */
static const uint8_t *read_event(tokens_t *tokens, const uint8_t *p, int *status)
{
    if (!grow((void **)&tokens->events, &tokens->event_capacity, tokens->event_count, sizeof(event_t))) {
        *status = TOKENS_NO_MEMORY;
        return NULL;
    }
    event_t *event = &tokens->events[tokens->event_count];
    value_t phase, cat, other;
    value_t *const fields[] = {&phase, &cat, &event->name, &event->pid, &event->tid, &event->ts, &event->dur, &event->args};
    int key;
    phase.type = cat.type = event->name.type = event->pid.type = event->tid.type = VALUE_MISSING;
    event->ts.type = event->dur.type = event->args.type = VALUE_MISSING;
    event->node = 0;
    event->next = event->next_in_layout = -1;
    event->start = (uint32_t)(p - tokens->text);
    p = skip_space(p + 1);
    for (;;) {
        if (*p != '"' || (p = read_key(p + 1, tokens->limit, &key)) == NULL) {
            return NULL;
        }
        p = skip_space(p);
        if (*p != ':') {
            return NULL;
        }
        p = skip_space(p + 1);
        int is_args = key == KEY_ARGS;
        /* of a key that occurs twice the last value counts, as in a dict */
        value_t *value = key == KEY_OTHER ? &other : fields[key];
        p = is_args && *p == '{' ? read_arguments(tokens, p, event, status) : read_value(tokens, p, value);
        if (p == NULL) {
            return NULL;
        }
        if (is_args && value->type != VALUE_OBJECT) {
            event->node = 0;
        }
        p = skip_space(p);
        if (*p == '}') {
            p++;
            break;
        }
        if (*p != ',') {
            return NULL;
        }
        p = skip_space(p + 1);
    }
    event->length = (uint32_t)(p - tokens->text) - event->start;
    if (phase.type != VALUE_STRING) {
        return NULL;
    }
    event->phase = phase.length == 3 ? tokens->text[phase.start + 1] : PHASE_OTHER;
    int32_t category = category_of(tokens, &cat, status);
    if (category < 0) {
        return NULL;
    }
    add_to_group(tokens, category, (int32_t)tokens->event_count++);
    return p;
}

int tokens_read(tokens_t *tokens, const uint8_t *text, size_t length, size_t end)
{
    if (length > INT32_MAX) {
        return TOKENS_REFUSED;
    }
    tokens->text = text;
    tokens->limit = text + length;
    tokens->event_count = tokens->value_count = tokens->group_count = 0;
    tokens->recent_category = 0;
    if (++tokens->slice == 0) { /* after 2**32 slices the marks of old ones would seem to be of this one */
        tokens->slice = UINT32_MAX;
        return TOKENS_REFUSED;
    }
    int status = TOKENS_REFUSED;
    const uint8_t *p = text, *stop = text + end;
    while (p < stop && (*p == ',' || *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }
    if (p == stop) {
        return TOKENS_READ;
    }
    for (;;) {
        if (p >= stop || *p != '{' || (p = read_event(tokens, p, &status)) == NULL) {
            return status;
        }
        p = skip_space(p);
        if (p >= stop) {
            /* what stands between the last event and the end is space */
            const event_t *last = &tokens->events[tokens->event_count - 1];
            return text + last->start + last->length <= stop ? TOKENS_READ : TOKENS_REFUSED;
        }
        if (*p != ',') {
            return TOKENS_REFUSED;
        }
        p = skip_space(p + 1);
    }
}
