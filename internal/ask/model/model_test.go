package model

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/claim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const planText = `{"type":"call_tool","server":"files","tool":"read_file","args":{"path":"/a"}}`

// wire is one of the two wires: how an answer of the model is put on it.
type wire struct {
	name   string
	path   string // a request goes to
	plan   func(url string) ask.Planner
	text   func(s string) string // an answer of one whole text
	others map[string]string     // answers that are no one whole text
	check  func(t *testing.T, r *http.Request, body map[string]any)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

var wires = []wire{
	{
		name: "openai", path: "/v1/chat/completions",
		plan: func(url string) ask.Planner { return NewOpenAI(Endpoint{URL: url + "/v1", Model: "m1", Key: "key-1"}) },
		text: func(s string) string {
			return `{"id":"c1","object":"chat.completion","created":1,"model":"m1","choices":[{"index":0,"message":{"role":"assistant","content":` + quote(s) + `},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
		},
		others: map[string]string{
			"a tool call": `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			"cut off":     `{"choices":[{"index":0,"message":{"role":"assistant","content":"{\"type\":"},"finish_reason":"length"}]}`,
			"a refusal":   `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"no"},"finish_reason":"stop"}]}`,
			"no choice":   `{"choices":[]}`,
			"two choices": `{"choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}]}`,
			"empty":       `{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`,
			"filtered":    `{"choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"content_filter"}]}`,
			"unfinished":  `{"choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":null}]}`,
			"no finish":   `{"choices":[{"index":0,"message":{"role":"assistant","content":"{}"}}]}`,
			"no choices":  `{}`,
		},
		check: func(t *testing.T, r *http.Request, body map[string]any) {
			if got := r.Header.Get("Authorization"); got != "Bearer key-1" {
				t.Errorf("Authorization %q", got)
			}
			if body["model"] != "m1" || body["stream"] == true || body["tools"] != nil {
				t.Errorf("request %v", body)
			}
			messages := body["messages"].([]any)
			if system, user := messages[0].(map[string]any), messages[1].(map[string]any); len(messages) != 2 ||
				!strings.Contains(system["content"].(string), `"tool":"read_file"`) || user["content"] != "read /a" {
				t.Errorf("messages %v", messages)
			}
		},
	},
	{
		name: "anthropic", path: "/v1/messages",
		plan: func(url string) ask.Planner { return NewAnthropic(Endpoint{URL: url, Model: "m1", Key: "key-1"}) },
		text: func(s string) string {
			return `{"id":"msg_1","type":"message","role":"assistant","model":"m1","content":[{"type":"text","text":` + quote(s) + `}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
		},
		others: map[string]string{
			"a tool call": `{"id":"m","type":"message","role":"assistant","model":"m1","content":[{"type":"tool_use","id":"t","name":"read_file","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
			"cut off":     `{"id":"m","type":"message","role":"assistant","model":"m1","content":[{"type":"text","text":"{"}],"stop_reason":"max_tokens","usage":{"input_tokens":1,"output_tokens":1}}`,
			"a refusal":   `{"id":"m","type":"message","role":"assistant","model":"m1","content":[],"stop_reason":"refusal","usage":{"input_tokens":1,"output_tokens":1}}`,
			"two texts":   `{"id":"m","type":"message","role":"assistant","model":"m1","content":[{"type":"text","text":"{"},{"type":"text","text":"}"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
			"empty":       `{"id":"m","type":"message","role":"assistant","model":"m1","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
			"a pause":     `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"{}"}],"stop_reason":"pause_turn"}`,
			"a sequence":  `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"{}"}],"stop_reason":"stop_sequence"}`,
			"unfinished":  `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"{}"}],"stop_reason":null}`,
			"thinking":    `{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"{}"}],"stop_reason":"end_turn"}`,
			"no content":  `{}`,
		},
		check: func(t *testing.T, r *http.Request, body map[string]any) {
			if r.Header.Get("X-Api-Key") != "key-1" || r.Header.Get("Anthropic-Version") == "" || r.Header.Get("Authorization") != "" {
				t.Errorf("headers %v", r.Header)
			}
			if body["model"] != "m1" || body["stream"] == true || body["tools"] != nil || body["max_tokens"].(float64) < 1 {
				t.Errorf("request %v", body)
			}
			system := body["system"].([]any)[0].(map[string]any)["text"].(string)
			if !strings.Contains(system, `"tool":"read_file"`) {
				t.Errorf("system %q", system)
			}
		},
	},
}

var prompt = ask.Prompt{Request: "read /a", Tools: []ask.Listed{{Tool: claim.Tool{Server: "files", Name: "read_file"},
	Definition: []byte(`{"name":"read_file","description":"Reads","inputSchema":{"type":"object"}}`)}}}

// asked makes one request of a server that answers with handler, and counts what
// reached it.
func asked(t *testing.T, w wire, ctx context.Context, handler http.HandlerFunc) (raw []byte, requests int32, err error) {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n.Add(1)
		if b, err := io.ReadAll(r.Body); err == nil { // else the server does not notice that a client is gone
			r.Body = io.NopCloser(bytes.NewReader(b))
		}
		handler(rw, r)
	}))
	defer s.Close()
	raw, err = w.plan(s.URL).Plan(ctx, prompt)
	return raw, n.Load(), err
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		io.WriteString(w, body)
	}
}

// TestPlansArriveAsWritten: the text of the model's answer reaches the strict
// parser byte for byte, whatever it is (C05).
func TestPlansArriveAsWritten(t *testing.T) {
	for _, w := range wires {
		for _, text := range []string{
			planText, " \n" + planText + "\n", "```json\n" + planText + "\n```", "Here you are: " + planText,
			"\ufeff" + planText, planText + planText, `{"type":"call_tool","type":"final_answer"}`, "no plan at all",
		} {
			raw, n, err := asked(t, w, t.Context(), func(rw http.ResponseWriter, r *http.Request) {
				var body map[string]any
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != "POST" || r.URL.Path != w.path {
					t.Errorf("%s: %s %s %v", w.name, r.Method, r.URL.Path, err)
				} else {
					w.check(t, r, body)
				}
				answer(w.text(text))(rw, r)
			})
			if err != nil || string(raw) != text || n != 1 {
				t.Errorf("%s: %q came as %q, %v, in %d requests", w.name, text, raw, err, n)
			}
			_, stop := claim.ParsePlan(raw)
			if good := strings.TrimSpace(text) == planText; good != (stop == nil) {
				t.Errorf("%s: %q: %v", w.name, text, stop)
			}
		}
	}
}

// TestAnswersThatAreNoText end at the planner, with what was needed.
func TestAnswersThatAreNoText(t *testing.T) {
	for _, w := range wires {
		for name, body := range w.others {
			raw, n, err := asked(t, w, t.Context(), answer(body))
			var reply *ask.ReplyError
			if raw != nil || !errors.As(err, &reply) || reply.Need == "" || n != 1 {
				t.Errorf("%s, %s: %q %v, %d requests", w.name, name, raw, err, n)
			}
		}
	}
}

// TestBadEndpoints: none of what an endpoint can do wrong is repaired, repeated
// in an error, or asked for again.
func TestBadEndpoints(t *testing.T) {
	const secret = "secret-of-the-endpoint"
	bomb := packed(t, wireBytes*4)
	for _, w := range wires {
		other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			t.Errorf("%s: a redirect was followed", w.name)
		}))
		whole := w.text(planText)
		for name, handler := range map[string]http.HandlerFunc{
			"500": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(500)
				io.WriteString(rw, `{"error":{"message":"`+secret+`"}}`)
			},
			"429 with a time to wait": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Retry-After", "0")
				http.Error(rw, secret, http.StatusTooManyRequests)
			},
			"401": func(rw http.ResponseWriter, r *http.Request) { http.Error(rw, secret, http.StatusUnauthorized) },
			"403": func(rw http.ResponseWriter, r *http.Request) { http.Error(rw, secret, http.StatusForbidden) },
			"404": func(rw http.ResponseWriter, r *http.Request) { http.NotFound(rw, r) },
			"204": func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(http.StatusNoContent) },
			"201 with a plan": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(http.StatusCreated)
				io.WriteString(rw, whole)
			},
			"no type": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header()["Content-Type"] = nil
				io.WriteString(rw, whole)
			},
			"a redirect to a GET": func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, other.URL+w.path, http.StatusSeeOther)
			},
			"a redirect to itself": func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, w.path, http.StatusMovedPermanently)
			},
			"W14 compressed": func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "" {
					t.Errorf("%s asks for %s", w.name, r.Header.Get("Accept-Encoding"))
				}
				rw.Header().Set("Content-Type", "application/json")
				rw.Header().Set("Content-Encoding", "gzip")
				rw.Write(bomb)
			},
			"W14 compressed and unsaid": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.Write(bomb)
			},
			"too large a stream": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "text/event-stream")
				for line := strings.Repeat(": x\n", 1<<14); ; {
					if _, err := io.WriteString(rw, line); err != nil {
						return // the client has had enough
					}
				}
			},
			"without an end": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				for spaces := strings.Repeat(" ", 1<<16); ; {
					if _, err := io.WriteString(rw, spaces); err != nil {
						return
					}
				}
			},
			"W15 depth":  answer(strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)),
			"W16 digits": answer(strings.Replace(whole, `{"id"`, `{"n":1`+strings.Repeat("0", 100)+`,"id"`, 1)),
			"a redirect": func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, other.URL+w.path, http.StatusTemporaryRedirect)
			},
			"a stream": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(rw, "data: "+whole+"\n\ndata: [DONE]\n\n")
			},
			"HTML": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "text/html")
				io.WriteString(rw, whole)
			},
			"too large":         answer(whole + strings.Repeat(" ", wireBytes)),
			"not JSON":          answer(secret),
			"a list":            answer("[" + whole + "]"),
			"two objects":       answer(whole + whole),
			"W01 duplicate key": answer(strings.Replace(whole, `{"id"`, `{"id":"x","id"`, 1)),
			"W05 bad UTF-8":     answer(strings.Replace(whole, "m1", "m\xff", 1)),
			"lone surrogate":    answer(strings.Replace(whole, "m1", `\ud800`, 1)),
			"cut off": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.Header().Set("Content-Length", "100000")
				io.WriteString(rw, whole)
			},
			"hung up": func(rw http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		} {
			raw, n, err := asked(t, w, t.Context(), handler)
			var reply *ask.ReplyError
			if raw != nil || err == nil || errors.As(err, &reply) {
				t.Errorf("%s, %s: %q %v", w.name, name, raw, err)
				continue
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "key-1") {
				t.Errorf("%s, %s: the error repeats what is not for it: %v", w.name, name, err)
			}
			if n != 1 {
				t.Errorf("%s, %s: %d requests, want 1", w.name, name, n)
			}
			for part, says := range map[string]string{"redirect": "redirects", "too large": "more than 4 MiB", "without an end": "more than 4 MiB",
				"W14 compressed": "compressed its answer", "HTML": "not application/json", "401": "status 401", "W0": "strict JSON"} {
				if (strings.HasPrefix(name, part) || part == "redirect" && strings.Contains(name, part)) && name != "W14 compressed and unsaid" &&
					!strings.Contains(err.Error(), says) {
					t.Errorf("%s, %s: %v", w.name, name, err)
				}
			}
		}
		other.Close()
	}
}

// packed is that many bytes of white space, compressed.
func packed(t *testing.T, n int) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(bytes.Repeat([]byte(" "), n)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// late is a context whose deadline passes when the test says so.
type late struct {
	context.Context
	done chan struct{}
}

func (l *late) Done() <-chan struct{} { return l.done }

func (l *late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestDeadline: an answer that comes byte by byte and one that does not begin
// end with the time there is, and what came of it is not taken.
func TestDeadline(t *testing.T) {
	for _, w := range wires {
		for name, begin := range map[string]string{"nothing": "", "half": `{"id":`, "nearly all": strings.TrimSuffix(w.text(planText), "}"),
			"a stream": streams(t, w.name)["no_message_stop"] + streams(t, w.name)["no_done"]} {
			ctx := &late{t.Context(), make(chan struct{})}
			release := make(chan struct{})
			raw, n, err := asked(t, w, ctx, func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				if name == "a stream" {
					rw.Header().Set("Content-Type", "text/event-stream")
				}
				if begin != "" {
					for i := range begin {
						io.WriteString(rw, begin[i:i+1])
						rw.(http.Flusher).Flush()
					}
				}
				close(ctx.done)
				select {
				case <-r.Context().Done():
				case <-release:
				}
			})
			close(release)
			if raw != nil || err == nil || err.Error() != "the model's endpoint did not answer in time" || n != 1 {
				t.Errorf("%s, %s: %q %v, %d requests", w.name, name, raw, err, n)
			}
		}
	}
}

// TestSlowEndpoint: the caller's patience ends the wait, not the endpoint.
func TestSlowEndpoint(t *testing.T) {
	for _, w := range wires {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		raw, n, err := asked(t, w, ctx, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			io.WriteString(rw, "{")
			rw.(http.Flusher).Flush()
			cancel()
			select {
			case <-r.Context().Done():
			case <-release:
			}
		})
		close(release)
		if raw != nil || !errors.Is(err, context.Canceled) || n != 1 {
			t.Errorf("%s: %q %v, %d requests", w.name, raw, err, n)
		}
	}
}

// TestEnvironmentIsNotRead: a credential or an address that nobody named is not
// taken from the environment.
func TestEnvironmentIsNotRead(t *testing.T) {
	for _, k := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"} {
		t.Setenv(k, "ambient")
	}
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	for _, k := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(k, "http://127.0.0.1:1")
	}
	if p := modelClient().Transport.(*http.Transport).Proxy; p != nil {
		t.Error("a proxy is taken from the environment") // which is read once, and never for loopback
	}
	for _, w := range wires {
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			for k, v := range r.Header {
				if strings.Contains(strings.Join(v, " "), "ambient") {
					t.Errorf("%s sends %s", w.name, k)
				}
			}
			answer(w.text(planText))(rw, r)
		}))
		var p ask.Planner = NewOpenAI(Endpoint{URL: s.URL + "/v1", Model: "m1"})
		if w.name == "anthropic" {
			p = NewAnthropic(Endpoint{URL: s.URL, Model: "m1"})
		}
		if raw, err := p.Plan(t.Context(), prompt); err != nil || string(raw) != planText {
			t.Errorf("%s without a key: %q %v", w.name, raw, err)
		}
		s.Close()
	}
}

// TestSummaries go over the same wires.
func TestSummaries(t *testing.T) {
	source, stop := claim.NewSource([]byte(`{"structuredContent":{"id":"INC-1042"}}`), "/structuredContent", claim.SourceLimit)
	if stop != nil {
		t.Fatal(stop)
	}
	const text = `{"type":"summary","bullets":[{"text":"x","evidence":"INC-1042"}],"risks":[],"recommendations":[]}`
	for _, w := range wires {
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			if !strings.Contains(string(b), `\"id\":\"INC-1042\"`) {
				t.Errorf("%s: the source is not in %s", w.name, b)
			}
			answer(w.text(text))(rw, r)
		}))
		raw, err := w.plan(s.URL).(ask.Summariser).Summarise(t.Context(), ask.Material{Request: "q", Tool: "a/b", Source: source})
		if err != nil || string(raw) != text {
			t.Errorf("%s: %q %v", w.name, raw, err)
		}
		s.Close()
	}
}
