// Package otlp tells a collector what happened: spans and log records, by OTLP over HTTP in
// JSON.
//
// Who tells never waits. What is told goes into a queue of bounded length, and is dropped
// and counted where that is full; a batch that the collector does not take is sent once
// more, then lost and counted.
//
// It trusts its callers to tell nothing that a client or a server chose but the ids of a
// trace, and its operator with the endpoint. What the collector answers is read within
// bounds, and nothing of it but a status and a count is used.
package otlp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/metrics"
)

// The signals that can be told, as they are called.
const (
	Traces = "traces"
	Logs   = "logs"
)

const (
	maxQueued   = 2048             // of a signal; what comes beyond is dropped
	maxBatch    = 512              // in one request
	linger      = time.Second      // how long the first of a batch waits for others
	pause       = 2 * time.Second  // before a batch is sent once more
	postTimeout = 10 * time.Second // of one request
	maxAnswer   = 64 << 10         // bytes of an answer that are read
)

// Options say where a collector is and what it is told.
type Options struct {
	Endpoint string            // before /v1/traces and /v1/logs
	Header   map[string]string // goes with each request
	Signals  []string          // Traces, Logs
	Version  string            // of the product
	Log      *slog.Logger      // hears when the collector takes nothing, and when it does again
}

// Exporter tells a collector. Nil tells nobody.
type Exporter struct {
	spans  *pipe // of *Span
	events *pipe // of *Event
	from   from

	client  http.Client
	header  http.Header
	log     *slog.Logger
	counted *metrics.Family
	after   func(time.Duration) <-chan time.Time
	ctx     context.Context // of every request
	cancel  context.CancelFunc
	ending  chan struct{} // closed when no more will be told
}

// New returns an exporter that runs until Close.
func New(o Options) *Exporter { return start(o, time.After) }

func start(o Options, after func(time.Duration) <-chan time.Time) *Exporter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Exporter{header: http.Header{}, log: o.Log, counted: itemsTotal(), after: after, ending: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	// No proxy of the environment, and no redirect: the headers are secrets.
	e.client = http.Client{
		Transport:     &http.Transport{MaxResponseHeaderBytes: maxAnswer, TLSHandshakeTimeout: postTimeout, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for k, v := range o.Header {
		e.header.Set(k, v)
	}
	e.header.Set("Content-Type", "application/json")
	e.from = newFrom(o.Version)
	for _, signal := range o.Signals {
		url := strings.TrimSuffix(o.Endpoint, "/") + "/v1/" + signal
		switch signal {
		case Traces:
			e.spans = newPipe(e, signal, url)
		case Logs:
			e.events = newPipe(e, signal, url)
		}
	}
	return e
}

// instance is what one process is told from another by in a collector: a random UUID, which
// says nothing of the machine.
func instance() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func itemsTotal() *metrics.Family {
	return metrics.Counter("writ_otlp_items_total", "Spans and log records for a collector: sent, dropped where the queue was full, failed where it did not take them.", "signal", "result")
}

// Counted is what became of all that was told.
func (e *Exporter) Counted() *metrics.Family {
	if e == nil {
		return itemsTotal()
	}
	return e.counted
}

// Traces reports whether spans are told.
func (e *Exporter) Traces() bool { return e != nil && e.spans != nil }

// Logs reports whether events are told.
func (e *Exporter) Logs() bool { return e != nil && e.events != nil }

// Span tells of a span, where Traces says so.
func (e *Exporter) Span(s *Span) { e.spans.add(s) }

// Event tells of an event, where Logs says so.
func (e *Exporter) Event(ev *Event) { e.events.add(ev) }

// Close sends what was told, for as long as ctx leaves it. Nothing is told any more.
func (e *Exporter) Close(ctx context.Context) {
	if e == nil {
		return
	}
	close(e.ending)
	defer context.AfterFunc(ctx, e.cancel)()
	for _, p := range []*pipe{e.spans, e.events} {
		if p != nil {
			<-p.done
		}
	}
	e.cancel()
	e.client.CloseIdleConnections()
}

// pipe is the way of one signal. What it is told is sent by one goroutine.
type pipe struct {
	*Exporter
	signal, url string
	queue       chan any
	done        chan struct{}
	lost        int // since the collector took something
}

func newPipe(e *Exporter, signal, url string) *pipe {
	p := &pipe{Exporter: e, signal: signal, url: url, queue: make(chan any, maxQueued), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *pipe) add(x any) {
	select {
	case p.queue <- x:
	default:
		p.counted.Add(1, p.signal, "dropped")
	}
}

// run sends what it is told in batches, until the end and what was told before it.
func (p *pipe) run() {
	defer close(p.done)
	batch := make([]any, 0, maxBatch)
	var waited <-chan time.Time // nil until something waits
	for ended := false; !ended || len(p.queue) > 0; {
		full := false
		if ended {
			batch = append(batch, <-p.queue)
			full = len(batch) == maxBatch || len(p.queue) == 0
		} else {
			select {
			case x := <-p.queue:
				if batch = append(batch, x); len(batch) == 1 {
					waited = p.after(linger)
				}
				full = len(batch) == maxBatch
			case <-waited:
				full = true
			case <-p.ending:
				ended, full = true, len(p.queue) == 0
			}
		}
		if full && len(batch) > 0 {
			p.send(batch)
			clear(batch)
			batch, waited = batch[:0], nil
		}
	}
}

// send sends a batch, once more where the collector may take it then.
func (p *pipe) send(batch []any) {
	body, err := p.from.batch(p.signal, batch)
	refused := len(batch)
	for try := 0; err == nil; try++ {
		var again bool
		if refused, again, err = p.post(body, len(batch)); err == nil || !again || try == 1 {
			break
		}
		select {
		case <-p.after(pause):
			err = nil
		case <-p.ending: // there is no time
		}
	}
	p.counted.Add(uint64(len(batch)-refused), p.signal, "sent")
	if refused > 0 {
		p.counted.Add(uint64(refused), p.signal, "failed")
	}
	switch {
	case err != nil && p.lost == 0:
		p.log.Warn("the collector does not take what it is sent: it is lost until it does", "signal", p.signal, "error", err.Error())
	case err == nil && p.lost > 0:
		p.log.Warn("the collector takes what it is sent again", "signal", p.signal, "lost", p.lost)
		p.lost = 0
	}
	if err != nil {
		p.lost += refused
	}
}

// post sends a request and returns how much of it the collector refused; again says that it
// may take it later.
func (p *pipe) post(body []byte, all int) (refused int, again bool, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, postTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return all, false, err
	}
	req.Header = p.header
	resp, err := p.client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // without the address, which the operator knows
		}
		return all, true, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch s := resp.StatusCode; {
	case s/100 == 2 && err == nil:
		return rejected(answer, all), false, nil
	case err != nil:
		return all, true, err
	default:
		again = s == http.StatusTooManyRequests || s == http.StatusBadGateway || s == http.StatusServiceUnavailable || s == http.StatusGatewayTimeout
		return all, again, fmt.Errorf("it answers %d", s)
	}
}

// rejected is how much of a request its answer says was refused.
func rejected(answer []byte, all int) int {
	var a struct {
		Part struct {
			Spans   json.RawMessage `json:"rejectedSpans"`
			Records json.RawMessage `json:"rejectedLogRecords"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.Trim(string(a.Part.Spans)+string(a.Part.Records), `"`))
	if err != nil {
		return 0
	}
	return min(max(n, 0), all)
}
