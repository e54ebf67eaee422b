package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/metrics"
	"github.com/writ-project/writ/internal/otlp/standin"
)

// clock hands a batch's and a second try's waiting to the test.
type clock struct{ linger, pause chan time.Time }

func (c *clock) after(d time.Duration) <-chan time.Time {
	if d == pause {
		return c.pause
	}
	return c.linger
}

func exporter(url string, log io.Writer, signals ...string) (*Exporter, *clock) {
	c := &clock{make(chan time.Time), make(chan time.Time)}
	o := Options{Endpoint: url + "/", Header: map[string]string{"Authorization": "Bearer t0k3n"}, Signals: signals, Version: "v1", Log: slog.New(slog.NewTextHandler(log, nil))}
	return start(o, c.after), c
}

func span(name string) *Span {
	parent, _ := Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	return NewSpan(parent.Child(), parent, Server, name, time.Unix(1, 5), Attributes("mcp.method.name", "tools/call", "none", "", "error.type", "tool_error"))
}

func counted(t *testing.T, e *Exporter, want string) {
	t.Helper()
	var p metrics.Page
	p.Show(e.Counted())
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(p.String()), "\n") {
		if !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0") {
			got = append(got, strings.NewReplacer("writ_otlp_items_total", "", `signal="`, "", `result="`, "", `"`, "").Replace(line))
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("counted %v, want %s", got, want)
	}
}

// TestInstance: two processes differ in a collector, and what one tells does not.
func TestInstance(t *testing.T) {
	form := regexp.MustCompile(`"service.instance.id","value":{"stringValue":"([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"`)
	var ids []string
	for range 2 {
		c := standin.New(t)
		e, _ := exporter(c.URL, io.Discard, Traces, Logs)
		e.Span(span("x"))
		e.Event(NewEvent(Context{}, "writ.decision", Info, time.Unix(7, 0), "accepted", nil))
		e.Close(t.Context())
		bodies, _ := c.Bodies()
		for _, b := range bodies {
			if m := form.FindSubmatch(b); m != nil {
				ids = append(ids, string(m[1]))
			}
		}
	}
	if len(ids) != 4 || ids[0] != ids[1] || ids[2] != ids[3] || ids[0] == ids[2] {
		t.Errorf("%q", ids)
	}
}

// TestTold: what a collector reads, by the protocol's own definitions.
func TestTold(t *testing.T) {
	c := standin.New(t)
	e, _ := exporter(c.URL, io.Discard, Traces, Logs)
	e.Span(span("tools/call \"\x00\xff\u202e</script>\n"))
	parent := NewTrace()
	at := parent.Child()
	e.Span(NewSpan(at.Child(), at, Client, "x", time.Now(), nil))
	e.Event(NewEvent(at, "writ.decision", Warn, time.Unix(7, 0), "rejected", Attributes("a", "b")))
	e.Event(NewEvent(Context{}, "writ.decision", Info, time.Unix(7, 0), "accepted", nil))
	e.Close(t.Context())
	spans, events := c.Spans(), c.Events()
	if len(spans) != 2 || len(events) != 2 {
		t.Fatal(spans, events)
	}
	s := spans[0]
	if fmt.Sprintf("%x %x %d", s.TraceId, s.ParentSpanId, s.Kind) != "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331 2" || s.StartTimeUnixNano != 1_000_000_005 || s.EndTimeUnixNano < s.StartTimeUnixNano ||
		s.Status.GetCode() != 2 || len(s.Attributes) != 2 || s.Attributes[1].Value.GetStringValue() != "tool_error" || s.Flags != 0x301 || s.Name != "tools/call \"\x00\ufffd\u202e</script>\n" {
		t.Error(s)
	}
	if s := spans[1]; s.Kind != 3 || s.Status.GetCode() != 0 || !bytes.Equal(s.ParentSpanId, at.Span[:]) || !bytes.Equal(s.TraceId, at.Trace[:]) || s.Flags != 0x101 {
		t.Error(s)
	}
	if l := events[0]; l.EventName != "writ.decision" || l.SeverityNumber != 13 || l.TimeUnixNano != 7e9 || l.Body.GetStringValue() != "rejected" || !bytes.Equal(l.SpanId, at.Span[:]) || len(l.Attributes) != 1 {
		t.Error(l)
	}
	if l := events[1]; l.SpanId != nil || l.TraceId != nil || l.Flags != 0 {
		t.Error(l)
	}
	_, headers := c.Bodies()
	for _, h := range headers {
		if h.Get("Authorization") != "Bearer t0k3n" {
			t.Error(h)
		}
	}
	counted(t, e, "{logs,sent} 2 {traces,sent} 2")
}

// TestBatches: what comes within a while goes in one request, and never more than maxBatch.
func TestBatches(t *testing.T) {
	c := standin.New(t)
	e, clock := exporter(c.URL, io.Discard, Traces)
	for range 3 {
		e.Span(span("x"))
	}
	clock.linger <- time.Time{} // taken once something waits
	for range maxBatch + 1 {
		e.Span(span("x"))
	}
	e.Close(t.Context())
	bodies, _ := c.Bodies()
	if len(c.Spans()) != maxBatch+4 || len(bodies) < 2 {
		t.Errorf("%d spans in %d requests", len(c.Spans()), len(bodies))
	}
	counted(t, e, fmt.Sprintf("{traces,sent} %d", maxBatch+4))
	if (*Exporter)(nil).Traces() || (*Exporter)(nil).Logs() || e.Logs() {
		t.Error("it tells what nobody asked for")
	}
	(*Exporter)(nil).Close(t.Context())
}

// TestSlowCollector: who tells goes on, and what is kept for a collector is bounded.
func TestSlowCollector(t *testing.T) {
	goOn, came := make(chan struct{}), make(chan struct{}, 10)
	c := standin.New(t)
	c.Before = func(http.ResponseWriter, *http.Request) bool {
		came <- struct{}{}
		<-goOn
		return false
	}
	e, clock := exporter(c.URL, io.Discard, Traces)
	e.Span(span("first"))
	clock.linger <- time.Time{}
	<-came // one request is under way, and stays
	const all = 5 * maxQueued
	for range all {
		e.Span(span("x"))
	}
	if n := len(e.spans.queue); n != maxQueued {
		t.Errorf("%d wait", n)
	}
	counted(t, e, fmt.Sprintf("{traces,dropped} %d", all-maxQueued))
	close(goOn)
	e.Close(t.Context())
	counted(t, e, fmt.Sprintf("{traces,dropped} %d {traces,sent} %d", all-maxQueued, maxQueued+1))
}

// TestFailing: a batch is sent once more where that may help; then it is lost, counted, and
// said once. Nothing of what the collector answers is in the log.
func TestFailing(t *testing.T) {
	for name, x := range map[string]struct {
		answers []int // then 200
		counted string
		tries   int32
	}{
		"later":       {[]int{503}, "{traces,sent} 1", 2},
		"too many":    {[]int{429, 200}, "{traces,sent} 1", 2},
		"never":       {[]int{502, 504}, "{traces,failed} 1", 2},
		"wrong":       {[]int{400}, "{traces,failed} 1", 1},
		"no such":     {[]int{404}, "{traces,failed} 1", 1},
		"elsewhere":   {[]int{307}, "{traces,failed} 1", 1},
		"a login":     {[]int{401}, "{traces,failed} 1", 1},
		"all is well": {nil, "{traces,sent} 1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var tries atomic.Int32
			c := standin.New(t)
			c.Before = func(w http.ResponseWriter, r *http.Request) bool {
				n := int(tries.Add(1))
				if n > len(x.answers) || x.answers[n-1] == 200 {
					return false
				}
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(x.answers[n-1])
				io.WriteString(w, "\x1b[2Jsome words of the collector")
				return true
			}
			var log bytes.Buffer
			e, clock := exporter(c.URL, &log, Traces)
			e.Span(span("x"))
			clock.linger <- time.Time{}
			if x.tries == 2 {
				clock.pause <- time.Time{}
			}
			e.Close(t.Context())
			counted(t, e, x.counted)
			if tries.Load() != x.tries {
				t.Errorf("%d tries", tries.Load())
			}
			if lost := strings.Contains(x.counted, "failed"); lost != strings.Contains(log.String(), "does not take") || strings.Contains(log.String(), "words") || strings.Contains(log.String(), "t0k3n") {
				t.Errorf("the log has %s", log.String())
			}
		})
	}
}

// TestPartly: what the collector says that it refused was not sent.
func TestPartly(t *testing.T) {
	for answer, want := range map[string]int{
		`{}`: 0, ``: 0, `{"partialSuccess":{}}`: 0, `{"partialSuccess":{"rejectedSpans":"2"}}`: 2, `{"partialSuccess":{"rejectedLogRecords":3}}`: 3,
		`{"partialSuccess":{"rejectedSpans":"99999999999999999999"}}`: 0, `{"partialSuccess":{"rejectedSpans":-1}}`: 0, `{"partialSuccess":{"rejectedSpans":"1000"}}`: 7, `[`: 0,
	} {
		if n := rejected([]byte(answer), 7); n != want {
			t.Errorf("%s: %d", answer, n)
		}
	}
}

// TestDeadCollector: nobody is there, which is said once, and once more when somebody is.
func TestDeadCollector(t *testing.T) {
	c := standin.New(t)
	dead := true
	c.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		if dead {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	var log bytes.Buffer
	e, clock := exporter(c.URL, &log, Logs)
	for range 2 {
		e.Event(NewEvent(Context{}, "x", Info, time.Now(), "", nil))
		clock.linger <- time.Time{}
		clock.pause <- time.Time{}
	}
	e.Event(NewEvent(Context{}, "x", Info, time.Now(), "", nil))
	clock.linger <- time.Time{} // what was tried before is over
	clock.pause <- time.Time{}
	e.Close(t.Context())
	if n := strings.Count(log.String(), "does not take"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
	counted(t, e, "{logs,failed} 3")
}

// TestEndBounded: at the end a collector that never answers is left.
func TestEndBounded(t *testing.T) {
	forGood := make(chan struct{})
	c := standin.New(t)
	c.Before = func(http.ResponseWriter, *http.Request) bool { <-forGood; return true } // who asked has gone
	defer close(forGood)
	e, _ := exporter(c.URL, io.Discard, Traces, Logs)
	for range 2 * maxBatch {
		e.Span(span("x"))
		e.Event(NewEvent(Context{}, "x", Info, time.Now(), "", nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.Close(ctx)
	counted(t, e, fmt.Sprintf("{logs,failed} %d {traces,failed} %[1]d", 2*maxBatch))
}

func BenchmarkSpan(b *testing.B) {
	e, _ := exporter("http://127.0.0.1:1", io.Discard, Traces)
	parent := NewTrace()
	b.ReportAllocs()
	for b.Loop() {
		at := parent.Child()
		e.Span(NewSpan(at, parent, Server, "tools/call read", time.Now(), Attributes("mcp.method.name", "tools/call", "gen_ai.tool.name", "read", "writ.status", "accepted")))
	}
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	e.Close(ctx)
}

// BenchmarkEncode is what the goroutine beside the calls does for each of a batch.
func BenchmarkEncode(b *testing.B) {
	all := make([]*Span, maxBatch)
	for i := range all {
		all[i] = span("tools/call read")
	}
	r := newFrom("v1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.batch(Traces, all); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/maxBatch, "ns/span")
}
