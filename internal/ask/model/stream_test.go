package model

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/strictjson"
)

// streams are the files of one wire: a whole answer as a stream, whose first
// line is a comment that says what it must come to: accept, and then planText is
// read from it; need and a part of what a ask.ReplyError asks for; error and a
// part of why it cannot be read.
func streams(t testing.TB, wire string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", wire, "*.sse"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams of %s: %v", wire, err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".sse")] = string(b)
	}
	return out
}

// TestStreams: an endpoint that streams unasked is understood where its stream
// is whole, and never where it is not.
func TestStreams(t *testing.T) {
	for _, w := range wires {
		for name, body := range streams(t, w.name) {
			t.Run(w.name+"/"+name, func(t *testing.T) {
				head, _, _ := strings.Cut(body, "\n")
				want, part, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(head), ": "), " ")
				raw, n, err := asked(t, w, t.Context(), func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
					for line := range strings.Lines(body) {
						io.WriteString(rw, line)
						rw.(http.Flusher).Flush()
					}
				})
				var reply *ask.ReplyError
				var broken wireError
				ok := false
				switch want {
				case "accept":
					ok = err == nil && string(raw) == planText
				case "need":
					ok = raw == nil && errors.As(err, &reply) && part != "" && strings.Contains(reply.Need, part)
				case "error":
					ok = raw == nil && errors.As(err, &broken) && part != "" && strings.Contains(err.Error(), part)
				}
				if !ok || n != 1 {
					t.Errorf("%q %v (%+v), %d requests; want %s", raw, err, reply, n, head)
				}
				if err != nil && strings.Contains(err.Error(), "secret") {
					t.Errorf("the error repeats the endpoint: %v", err)
				}
			})
		}
	}
}

// TestStreamPrefixes: no part of a stream is taken for the whole of it.
func TestStreamPrefixes(t *testing.T) {
	for wire, whole := range wholes {
		body := streams(t, wire)["whole"]
		for i := range len(body) {
			if events, err := readEvents([]byte(body[:i])); err == nil {
				if b, err := whole(events); err == nil {
					t.Errorf("%s: the first %d of %d bytes came as %s", wire, i, len(body), b)
				}
			}
		}
	}
}

var wholes = map[string]func([]event) ([]byte, error){"openai": wholeOpenAI, "anthropic": wholeAnthropic}

// FuzzStreams: whatever is sent, what is put together is one strict object, or
// there is an error of our own.
func FuzzStreams(f *testing.F) {
	for wire := range wholes {
		for _, body := range streams(f, wire) {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		events, err := readEvents([]byte(body))
		for wire, whole := range wholes {
			var b []byte
			if err == nil {
				if b, err = whole(events); err == nil {
					if serr := strictjson.Check(b, strictjson.Limits{Depth: 64, Number: 64}); serr != nil {
						t.Errorf("%s: %q came as %q: %v", wire, body, b, serr)
					}
				}
			}
			if broken := wireError(""); err != nil && !errors.As(err, &broken) {
				t.Errorf("%s: %q: %v", wire, body, err)
			}
			err = nil
			if events == nil {
				break
			}
		}
	})
}
