/* What the trace reader asks Python's handler: a text, the keys of arguments or a category in; its number, their places or its
   meaning out. Each is asked for once: answers are kept. */

#include "reader.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------------- numbers */

/* A number that Python gives to a text. */
static int32_t ask(reader_t *reader, const char *method, PyObject *text)
{
    if (text == NULL) {
        return -1;
    }
    PyObject *answer = PyObject_CallMethod(reader->handler, method, "(O)", text);
    Py_DECREF(text);
    if (answer == NULL) {
        return -1;
    }
    long number = PyLong_AsLong(answer);
    Py_DECREF(answer);
    if (number == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (number < 0 || number > INT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s() gave %ld; expected a number from 0 to 2**31 - 1", method, number);
        return -1;
    }
    return (int32_t)number;
}

PyObject *list_text(const span_t *spans, size_t count)
{
    size_t length = 2;
    for (size_t i = 0; i < count; i++) {
        length += spans[i].length + (i > 0);
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);
    if (bytes == NULL) {
        return NULL;
    }
    char *p = PyBytes_AS_STRING(bytes);
    *p++ = '[';
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *p++ = ',';
        }
        memcpy(p, spans[i].text, spans[i].length);
        p += spans[i].length;
    }
    *p = ']';
    return bytes;
}

int32_t number_of_value(reader_t *reader, spans_t *cache, const char *method, const value_t *value)
{
    span_t span = SPAN(reader, value);
    uint64_t hash = spans_hash(reader->seed, &span, 1);
    int32_t number = spans_find(cache, hash, &span, 1);
    if (number == SPAN_NEW) {
        /* a text without escapes is decoded here: its JSON would be a copy, which may have many MB */
        PyObject *text = value->flags & VALUE_ESCAPED
                             ? PyBytes_FromStringAndSize((const char *)span.text, (Py_ssize_t)span.length)
                             : PyUnicode_DecodeUTF8((const char *)span.text + 1, (Py_ssize_t)span.length - 2, NULL);
        number = ask(reader, method, text);
        if (number >= 0) {
            spans_add(cache, hash, &span, 1, number);
        }
    }
    return number;
}

int32_t number_of_list(reader_t *reader, spans_t *cache, const char *method, const span_t *spans, size_t count)
{
    uint64_t hash = spans_hash(reader->seed, spans, count);
    int32_t number = spans_find(cache, hash, spans, count);
    if (number == SPAN_NEW) {
        number = ask(reader, method, list_text(spans, count));
        if (number >= 0) {
            spans_add(cache, hash, spans, count, number);
        }
    }
    return number;
}

int32_t number_of_rest(reader_t *reader, spans_t *cache, const char *method, const event_t *event, int layout_number,
                       const int16_t *places, int count)
{
    span_t spans[257]; /* arguments, see MOST_ARGUMENTS in reader_json.c, and the layout */
    for (int i = 0; i < count; i++) {
        spans[i] = SPAN(reader, &reader->tokens.values[event->first_value + (uint32_t)places[i]]);
    }
    spans[count] = (span_t){(const uint8_t *)&layout_number, sizeof layout_number};
    uint64_t hash = spans_hash(reader->seed, spans, (size_t)count + 1);
    int32_t number = spans_find(cache, hash, spans, (size_t)count + 1);
    if (number == SPAN_NEW) {
        number = ask(reader, method, PyBytes_FromStringAndSize(TEXT(reader, &event->args), (Py_ssize_t)event->args.length));
        if (number >= 0) {
            spans_add(cache, hash, spans, (size_t)count + 1, number);
        }
    }
    return number;
}

/* ---------------------------------------------------------------------------------------------------- layouts */

static const char *const ARGUMENT_KEYS[ARGUMENTS] = {
    "Concrete Inputs", "Input type", "Input Strides", "Input Dims",
    "External id", "Sequence number", "Fwd thread id", NULL, NULL, "Call stack", "finished", /* two names come from Python */
    "flops", "FLOPs", "Flops", "external id", "correlation", "device", "stream", "Stream Id",
    "Python id", "Python parent id", "Python module id", "Bytes", "Addr", "Total Allocated", "Device Type", "Device Id",
    "kernel",
};

/* Places of arguments, of which there are `limit`. */
static int16_t *places_from(PyObject *sequence, int limit, int16_t *count)
{
    PyObject *items = PySequence_Tuple(sequence);
    if (items == NULL) {
        return NULL;
    }
    Py_ssize_t length = PyTuple_GET_SIZE(items);
    int16_t *places = PyMem_Malloc((size_t)(length ? length : 1) * sizeof *places);
    if (places == NULL) {
        Py_DECREF(items);
        PyErr_NoMemory();
        return NULL;
    }
    int valid = length <= limit;
    for (Py_ssize_t i = 0; valid && i < length; i++) {
        long place = PyLong_AsLong(PyTuple_GET_ITEM(items, i));
        valid = place >= 0 && place < limit;
        places[i] = (int16_t)place;
    }
    Py_DECREF(items);
    if (!valid) {
        PyMem_Free(places);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "layout() gave places that are not those of arguments");
        }
        return NULL;
    }
    *count = (int16_t)length;
    return places;
}

/* The keys from the root to a node as a tuple of str. */
static PyObject *keys_of(reader_t *reader, int32_t node, int count)
{
    const tokens_t *tokens = &reader->tokens;
    PyObject *keys = PyTuple_New(count);
    for (int place = count - 1; keys != NULL && place >= 0; place--) {
        const node_t *each = &tokens->nodes[node];
        PyObject *key = PyUnicode_DecodeUTF8((const char *)tokens->keys + each->key_start, each->key_length - 1, NULL);
        if (key == NULL) {
            Py_CLEAR(keys);
            break;
        }
        PyTuple_SET_ITEM(keys, place, key);
        node = each->parent;
    }
    return keys;
}

static int fill_layout(reader_t *reader, int32_t node, layout_t *layout)
{
    const tokens_t *tokens = &reader->tokens;
    memset(layout, 0, sizeof *layout);
    for (int i = 0; i < ARGUMENTS; i++) {
        layout->place[i] = -1;
    }
    layout->count = (int16_t)tokens->nodes[node].depth;
    for (int32_t each = node; each > 0; each = tokens->nodes[each].parent) {
        const node_t *one = &tokens->nodes[each];
        layout->is_odd |= one->escaped;
        for (int32_t other = one->parent; other > 0; other = tokens->nodes[other].parent) {
            const node_t *two = &tokens->nodes[other];
            layout->is_odd |= one->key_length == two->key_length &&
                              memcmp(tokens->keys + one->key_start, tokens->keys + two->key_start, one->key_length) == 0;
        }
    }
    if (layout->is_odd) {
        return 0;
    }
    PyObject *keys = keys_of(reader, node, layout->count);
    if (keys == NULL) {
        return -1;
    }
    for (int i = 0; i < ARGUMENTS; i++) {
        PyObject *wanted = i == ARG_SYNTHETIC   ? Py_NewRef(reader->synthetic_key)
                           : i == ARG_ALLOCATES ? Py_NewRef(reader->allocates_key)
                                                : PyUnicode_FromString(ARGUMENT_KEYS[i]);
        for (int place = 0; wanted != NULL && place < layout->count; place++) {
            if (PyUnicode_Compare(wanted, PyTuple_GET_ITEM(keys, place)) == 0) {
                layout->place[i] = (int16_t)place;
            }
        }
        Py_XDECREF(wanted);
    }
    PyObject *answer = PyErr_Occurred() ? NULL : PyObject_CallMethod(reader->handler, "layout", "(O)", keys);
    Py_DECREF(keys);
    PyObject *rest, *device_rest;
    int done = answer != NULL && PyArg_ParseTuple(answer, "pOO", &layout->has_rare, &rest, &device_rest) &&
               (layout->rest = places_from(rest, layout->count, &layout->rest_count)) != NULL &&
               (layout->device_rest = places_from(device_rest, layout->count, &layout->device_rest_count)) != NULL;
    Py_XDECREF(answer);
    for (int i = 0; i < INPUTS; i++) {
        layout->has_inputs |= layout->place[i] >= 0;
    }
    layout->has_synthetic = layout->place[ARG_SYNTHETIC] >= 0;
    return done ? 0 : -1;
}

int32_t layout_of(reader_t *reader, int32_t place)
{
    node_t *node = &reader->tokens.nodes[place];
    if (node->layout >= 0) {
        return node->layout;
    }
    if (reader->layout_count == reader->layout_capacity) {
        size_t capacity = reader->layout_capacity ? reader->layout_capacity * 2 : 32;
        layout_t *larger = PyMem_Realloc(reader->layouts, capacity * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        reader->layouts = larger;
        reader->layout_capacity = capacity;
    }
    layout_t *layout = &reader->layouts[reader->layout_count];
    if (fill_layout(reader, place, layout) < 0) {
        PyMem_Free(layout->rest);
        PyMem_Free(layout->device_rest);
        return -1;
    }
    return node->layout = (int32_t)reader->layout_count++;
}

/* ---------------------------------------------------------------------------------------------------- meanings */

const meaning_t *meaning_of(reader_t *reader, int32_t place)
{
    const tokens_t *tokens = &reader->tokens;
    if (reader->meaning_count < tokens->category_count) {
        meaning_t *larger = PyMem_Realloc(reader->meanings, tokens->category_count * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        memset(larger + reader->meaning_count, 0, (tokens->category_count - reader->meaning_count) * sizeof *larger);
        reader->meanings = larger;
        reader->meaning_count = tokens->category_count;
    }
    meaning_t *meaning = &reader->meanings[place];
    if (meaning->text != NULL) {
        return meaning;
    }
    const category_t *category = &tokens->categories[place];
    PyObject *text = place == 0 ? Py_NewRef(Py_None)
                                : PyUnicode_DecodeUTF8((const char *)tokens->keys + category->start, category->length, NULL);
    PyObject *answer = text == NULL ? NULL : PyObject_CallMethod(reader->handler, "meaning", "(O)", text);
    const char *how;
    int done = answer != NULL && PyArg_ParseTuple(answer, "si", &how, &meaning->kind);
    if (done) {
        meaning->how = strcmp(how, "ignored") == 0   ? IGNORED
                       : strcmp(how, "host") == 0    ? AS_HOST
                       : strcmp(how, "runtime") == 0 ? AS_RUNTIME
                       : strcmp(how, "frames") == 0  ? AS_FRAMES
                       : strcmp(how, "device") == 0  ? AS_DEVICE
                       : strcmp(how, "phase") == 0   ? BY_PHASE
                                                     : BY_PYTHON;
        meaning->text = text;
    }
    else {
        Py_XDECREF(text);
    }
    Py_XDECREF(answer);
    return done ? meaning : NULL;
}
