/* The trace reader: slices of the text of a trace file in, columns of numbers out.

   The Python code in mindtorch_prof/load/collect.py is the definition of what is read; this is a faster way to the same columns.
   A slice is tokenized as a whole (reader_json.c). Then its events are added category by category, as Python does it: the events
   of a category either all here, if each of them has every field in its usual type, or all by Python, from their text. Tables of
   names, threads, inputs and so on belong to Python; the numbers that they gave to a text are cached (reader_spans.c).

   The `handler` is the Python object that is called for everything that is new or unusual; see _reader.pyi. */

#include "reader.h"

#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_reader_numpy
#include <numpy/arrayobject.h>

#include <string.h>

/* ---------------------------------------------------------------------------------------------------- slices */

static int flush_all(reader_t *reader)
{
    for (int which = 0; which < TABLES; which++) {
        if (table_flush(&reader->tables[which], which, reader->handler) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Let Python add the events of a category, from their text. Rows of before come first, so they are handed over before. */
static int add_by_python(reader_t *reader, const category_t *group, PyObject *category)
{
    const tokens_t *tokens = &reader->tokens;
    if (flush_all(reader) < 0) {
        return -1;
    }
    span_t *spans = PyMem_Malloc((size_t)group->count * sizeof *spans);
    if (spans == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    size_t count = 0;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next) {
        const event_t *event = &tokens->events[number];
        spans[count++] = (span_t){tokens->text + event->start, event->length};
    }
    PyObject *text = list_text(spans, count);
    PyMem_Free(spans);
    if (text == NULL) {
        return -1;
    }
    PyObject *done = PyObject_CallMethod(reader->handler, "group", "OO", category, text);
    Py_DECREF(text);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int add_group(reader_t *reader, int32_t place)
{
    const meaning_t *meaning = meaning_of(reader, place);
    if (meaning == NULL) {
        return -1;
    }
    const category_t *group = &reader->tokens.categories[place];
    int status = NOT_PLAIN;
    switch (meaning->how) {
    case IGNORED:
        return 0;
    case AS_HOST:
        status = add_host(reader, group, meaning->kind, 0);
        break;
    case AS_RUNTIME:
        status = add_runtime(reader, group, meaning->kind);
        break;
    case AS_FRAMES:
        status = add_frames(reader, group);
        break;
    case AS_DEVICE:
        status = add_device(reader, group, meaning->kind);
        break;
    case BY_PHASE:
        if (reader->tokens.events[group->first_event].phase == 'i') {
            status = add_memory(reader, group);
            if (status == ADDED) {
                return 0; /* instants are not counted */
            }
        }
        else {
            status = add_host(reader, group, meaning->kind, 1);
        }
        break;
    default:
        break;
    }
    if (status == FAILED) {
        return -1;
    }
    if (status == NOT_PLAIN) {
        return add_by_python(reader, group, meaning->text);
    }
    PyObject *done = PyObject_CallMethod(reader->handler, "counted", "Oi", meaning->text, (int)group->count);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int read_slice(reader_t *reader, const uint8_t *text, size_t length, size_t end)
{
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = tokens_read(&reader->tokens, text, length, end);
    Py_END_ALLOW_THREADS
    if (status == TOKENS_NO_MEMORY) {
        PyErr_NoMemory();
        return -1;
    }
    if (status == TOKENS_REFUSED) {
        return 0;
    }
    memset(reader->host_places.recent, 0, sizeof reader->host_places.recent);
    memset(reader->device_places.recent, 0, sizeof reader->device_places.recent);
    for (size_t i = 0; i < reader->tokens.group_count; i++) {
        if (add_group(reader, reader->tokens.groups[i]) < 0) {
            return -1;
        }
    }
    for (int which = 0; which < TABLES; which++) {
        if (reader->tables[which].count >= FLUSH_ROWS && table_flush(&reader->tables[which], which, reader->handler) < 0) {
            return -1;
        }
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------------------- the type */

static PyObject *reader_take(PyObject *self, PyObject *args)
{
    reader_t *reader = (reader_t *)self;
    PyObject *text;
    Py_ssize_t end;
    if (!PyArg_ParseTuple(args, "Sn:take", &text, &end)) {
        return NULL;
    }
    if (end < 0 || end > PyBytes_GET_SIZE(text)) {
        PyErr_Format(PyExc_ValueError, "take(): the end %zd is outside of %zd bytes", end, PyBytes_GET_SIZE(text));
        return NULL;
    }
    if (reader->busy) {
        PyErr_SetString(PyExc_RuntimeError, "take(): another slice is being read");
        return NULL;
    }
    reader->busy = 1;
    int status = read_slice(reader, (const uint8_t *)PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text), (size_t)end);
    reader->busy = 0;
    if (status < 0) {
        return NULL;
    }
    if (status == 0) {
        Py_RETURN_NONE;
    }
    return PyLong_FromSize_t(reader->tokens.event_count);
}

static PyObject *reader_flush(PyObject *self, PyObject *Py_UNUSED(args))
{
    reader_t *reader = (reader_t *)self;
    if (reader->busy) {
        PyErr_SetString(PyExc_RuntimeError, "flush(): a slice is being read");
        return NULL;
    }
    reader->busy = 1;
    int status = flush_all(reader);
    reader->busy = 0;
    if (status < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"handler", "synthetic", "allocates", "merged_from", NULL};
    PyObject *handler, *synthetic, *allocates;
    long long merged_from;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OUUL:Reader", names, &handler, &synthetic, &allocates, &merged_from)) {
        return NULL;
    }
    reader_t *reader = (reader_t *)type->tp_alloc(type, 0);
    if (reader == NULL) {
        return NULL;
    }
    reader->handler = Py_NewRef(handler);
    reader->synthetic_key = Py_NewRef(synthetic);
    reader->allocates_key = Py_NewRef(allocates);
    reader->merged_from = merged_from;
    reader->host_places.method = "thread";
    reader->device_places.method = "device_thread";
    for (int which = 0; which < TABLES; which++) {
        reader->tables[which].coarse = 1;
    }
    /* Python's own hashes are seeded at random */
    Py_hash_t seed = PyObject_Hash(synthetic);
    reader->seed = (uint64_t)seed ^ UINT64_C(0xD6E8FEB86659FD93);
    if (seed == -1 || tokens_init(&reader->tokens) != TOKENS_READ) {
        Py_DECREF(reader);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)reader;
}

static int reader_traverse(PyObject *self, visitproc visit, void *arg)
{
    reader_t *reader = (reader_t *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reader->handler);
    return 0;
}

static int reader_clear(PyObject *self)
{
    Py_CLEAR(((reader_t *)self)->handler);
    return 0;
}

static void reader_dealloc(PyObject *self)
{
    reader_t *reader = (reader_t *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    reader_clear(self);
    Py_CLEAR(reader->synthetic_key);
    Py_CLEAR(reader->allocates_key);
    tokens_free(&reader->tokens);
    for (int which = 0; which < TABLES; which++) {
        table_free(&reader->tables[which]);
    }
    spans_t *caches[] = {&reader->names,  &reader->inputs,        &reader->stacks,
                         &reader->extras, &reader->device_extras, &reader->host_places.cache,
                         &reader->device_places.cache};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        spans_free(caches[i]);
    }
    for (size_t i = 0; i < reader->layout_count; i++) {
        PyMem_Free(reader->layouts[i].rest);
        PyMem_Free(reader->layouts[i].device_rest);
    }
    PyMem_Free(reader->layouts);
    for (size_t i = 0; i < reader->meaning_count; i++) {
        Py_XDECREF(reader->meanings[i].text);
    }
    PyMem_Free(reader->meanings);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef reader_methods[] = {
    {"take", reader_take, METH_VARARGS,
     "take(text, end)\n--\n\nAdd the events of text[:end]; how many they are. None: they are not plainly valid JSON, and none was added."},
    {"flush", reader_flush, METH_NOARGS, "flush()\n--\n\nHand all rows to the handler."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Reader(handler, synthetic, allocates, merged_from)\n--\n\nReads slices of the events of a trace into columns."},
    {Py_tp_new, reader_new},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "mindtorch_prof.load._reader.Reader",
    .basicsize = sizeof(reader_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = reader_slots,
};

static int module_exec(PyObject *module)
{
    if (PyArray_ImportNumPyAPI() < 0) {
        return -1;
    }
    PyObject *type = PyType_FromSpec(&reader_spec);
    if (type == NULL) {
        return -1;
    }
    int status = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return status;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static PyModuleDef reader_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mindtorch_prof.load._reader",
    .m_doc = "The compiled reader of trace files; mindtorch_prof/load/core.py chooses between it and the Python code.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__reader(void)
{
    return PyModuleDef_Init(&reader_module);
}
