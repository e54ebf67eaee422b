package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

const (
	maxResumes   = 5 // attempts to resume one stream without a new event
	maxErrorBody = 1 << 20
	deleteTime   = 2 * time.Second
	idleConns    = 256 // kept for the next request: as many as a client may have open (package downstream)
)

// errSessionGone is the loss of a legacy session: the server does not know it
// any more, so a new one is opened at once.
var errSessionGone = errors.New("the server ended the session")

// web is Streamable HTTP. Every request stands alone; only the legacy wire has
// a session and a GET stream beside the requests.
type web struct {
	c      *conn
	client *http.Client
	bare   *http.Request // to the operator's URL, with the header fields of each; never sent
	tells  chan []byte
	wg     sync.WaitGroup

	mu      sync.Mutex
	session string // Mcp-Session-Id, "" without one
}

func (c *Config) validateHTTP() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("url must be http:// or https:// with a host, without user and fragment")
	}
	for k, v := range c.Header {
		low := strings.ToLower(k)
		switch {
		case !httpguts.ValidHeaderFieldName(k) || !httpguts.ValidHeaderFieldValue(v):
			return errors.New("a header's name or value is not valid")
		case strings.HasPrefix(low, "mcp-"), ownHeaders[low]:
			return fmt.Errorf("header %s is set by Writ", low)
		}
	}
	return nil
}

var ownHeaders = map[string]bool{
	"host": true, "content-length": true, "content-type": true, "content-encoding": true,
	"accept": true, "accept-encoding": true, "connection": true, "transfer-encoding": true,
	"te": true, "trailer": true, "upgrade": true, "last-event-id": true, "idempotency-key": true,
	"x-idempotency-key": true, "origin": true,
}

// startHTTP makes Streamable HTTP c's link. The client uses no proxy of the
// environment, keeps no cookies, follows no redirect and asks for no
// compression, so that what is bounded is what was sent.
func startHTTP(c *conn) {
	w := &web{c: c, tells: make(chan []byte, tellQueue)}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	w.client = &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxIdleConns:           idleConns,
			MaxIdleConnsPerHost:    idleConns,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.bare, _ = http.NewRequest(http.MethodGet, c.s.cfg.URL, nil) // Config.Validate has parsed it
	for k, v := range c.s.cfg.Header {
		w.bare.Header.Set(k, v)
	}
	c.link = w
	w.wg.Go(w.teller)
}

func (w *web) sessionID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// request builds one HTTP request. The host is that of the operator's URL
// (attack S04), and no header comes from anywhere but Config and this file.
func (w *web) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	req := w.bare.WithContext(ctx)
	req.Method, req.Header = method, make(http.Header, len(w.bare.Header)+8)
	if body != nil {
		req.Body = io.NopCloser(bytes.NewReader(body)) // without GetBody: net/http must not send it a second time
		req.ContentLength = int64(len(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	maps.Copy(req.Header, w.bare.Header) // its values are shared: nobody adds to them
	if c := w.c.s.cfg.Credential; c != nil && req.Header.Get("Authorization") == "" {
		v, err := c.Authorization(ctx)
		if err != nil {
			return nil, err
		}
		if v != "" {
			req.Header.Set("Authorization", v)
		}
	}
	if v := w.c.version; v != "" {
		req.Header.Set("Mcp-Protocol-Version", v)
	}
	if id := w.sessionID(); id != "" {
		req.Header.Set("Mcp-Session-Id", id)
	}
	return req, nil
}

func (w *web) exchange(ctx context.Context, k *call) Response {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.c.s.ctx, func() { cancel(ErrClosed) })()
	// A body that was given up is closed before the answer is read from k.
	out := w.post(ctx, k)
	if out.End == Unknown && ctx.Err() != nil && !w.c.modern.Load() && !k.quiet {
		w.tell(rpc.Cancelled(k.id))
	}
	return out
}

func (w *web) post(ctx context.Context, k *call) Response {
	req, err := w.request(ctx, http.MethodPost, k.msg)
	if err != nil {
		return notSent("%s", ended2(ctx, err.Error()))
	}
	if w.c.modern.Load() {
		req.Header.Set("Mcp-Method", k.method)
		if k.name != "" {
			req.Header.Set("Mcp-Name", headerValue(k.name))
		}
		for _, h := range k.headers {
			req.Header.Set(h[0], h[1])
		}
	}
	var wrote, kept atomic.Bool
	mayLeave := func() bool {
		may := w.c.mayLeave(k)
		kept.Store(!may)
		return may
	}
	headersDone := func() {}
	if req.URL.Scheme == "http" {
		// What net/http knows to be in memory it sends together with the header fields, in
		// one write. It says in between that those are done, from the goroutine that then
		// reads the body: one that is not there is an error, and nothing of the request
		// leaves.
		body := bytes.NewReader(k.msg)
		req.Body = io.NopCloser(body)
		headersDone = func() {
			if !mayLeave() {
				body.Reset(nil)
			}
		}
	} else {
		req.Body = &heldBody{ReadCloser: req.Body, mayLeave: mayLeave}
	}
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) { wrote.Store(true) },
		WroteHeaders:     func() { wrote.Store(true); headersDone() },
	}))
	resp, err := w.client.Do(req)
	if err != nil {
		why := ended2(ctx, "the server cannot be reached")
		if kept.Load() {
			return held()
		}
		if !wrote.Load() {
			return notSent("%s", why)
		}
		return unknown("%s", why)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		w.c.die(errSessionGone)
		return notSent("the server does not know this session any more; a new one is being opened")
	}
	if resp.Header.Get("Content-Encoding") != "" {
		return unknown("the server sent a compressed answer nobody asked for")
	}
	if resp.StatusCode == http.StatusUnauthorized && w.c.s.cfg.Credential != nil {
		w.c.s.cfg.Credential.Refused(req.Header.Get("Authorization"))
		return Response{End: Answered, Err: rpc.Errorf(rpc.CodeInternal, "the server wants a login (writ login %s)", w.c.s.cfg.Name)}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return w.refused(resp, k)
	}
	if k.method == "initialize" {
		w.adopt(resp.Header.Get("Mcp-Session-Id"))
	}
	switch mediaType(resp) {
	case "application/json":
		body, over, err := readBody(resp.Body, w.c.s.limits.Line)
		switch {
		case over:
			w.c.tooLong(nil, k)
		case err != nil:
			return unknown("%s", ended2(ctx, "the server's answer broke off"))
		case !w.c.receive(body, k, false):
			return unknown("the server's answer is not a message")
		}
		if !k.answered() {
			return unknown("the server answered with something else")
		}
		return k.reply
	case "text/event-stream":
		return w.stream(ctx, resp.Body, k)
	}
	return unknown("the server took the request and did not answer it")
}

// heldBody is a request's body that is looked at for the last time when its
// first byte would leave: a connection may take long to make.
type heldBody struct {
	io.ReadCloser
	mayLeave func() bool
	begun    bool
}

var errHeld = errors.New("held back")

func (b *heldBody) Read(p []byte) (int, error) {
	if !b.begun && !b.mayLeave() {
		return 0, errHeld
	}
	b.begun = true
	return b.ReadCloser.Read(p)
}

func ended2(ctx context.Context, other string) string {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return other
}

// refused reads an answer whose status is not 2xx. A JSON-RPC error in it is
// the server's answer; without one, 3xx and 4xx say that the request was not
// served, and 5xx say nothing about what was done.
func (w *web) refused(resp *http.Response, k *call) Response {
	body, over, err := readBody(resp.Body, maxErrorBody)
	if !over && err == nil {
		v, _ := strictjson.Parse(body, strictjson.Result)
		id, said := v.Get("id"), v.Get("error")
		if said.Kind() == strictjson.Object && (!id.Exists() || id.Kind() == strictjson.Null || bytes.Equal(id.Raw(), k.id)) {
			return Response{End: Answered, Err: rpc.ParseError(said)}
		}
	}
	if resp.StatusCode >= 500 || resp.StatusCode < 200 {
		return unknown("the server answered HTTP %d", resp.StatusCode)
	}
	return Response{End: Answered, Err: rpc.Errorf(rpc.CodeInternal, "the server refused with HTTP %d", resp.StatusCode)}
}

// adopt keeps a session id the server gave, if it is one the protocol allows.
func (w *web) adopt(id string) {
	for i := 0; i < len(id); i++ {
		if id[i] < 0x21 || id[i] > 0x7e {
			return
		}
	}
	if len(id) <= 1024 {
		w.mu.Lock()
		w.session = id
		w.mu.Unlock()
	}
}

// stream reads the answer to k from an event stream. On the legacy wire a
// stream that ends early is resumed after its last event id; the request
// itself is never sent again.
func (w *web) stream(ctx context.Context, body io.Reader, k *call) Response {
	tries := 0
	var last string
	for {
		es := newEvents(body, w.c.s.limits.Line)
		es.lastID = last
		err := w.deliver(es, k)
		if k.answered() {
			return k.reply
		}
		if es.lastID != last {
			last, tries = es.lastID, 0
		}
		if ctx.Err() != nil || w.c.modern.Load() || last == "" || err == errStop {
			return unknown("%s", ended2(ctx, "the server's answer broke off"))
		}
		resp, ok := w.resume(ctx, last, es.retry, &tries)
		if !ok {
			return unknown("%s", ended2(ctx, "the server's answer broke off and could not be resumed"))
		}
		body = resp.Body
		defer resp.Body.Close()
	}
}

var errStop = errors.New("stop")

// deliver hands over events until the stream ends or k is answered.
func (w *web) deliver(es *events, k *call) error {
	for {
		data, over, err := es.next()
		switch {
		case err != nil:
			return err
		case over:
			w.c.tooLong(nil, k)
		case len(data) > 0 && !w.c.receive(data, k, false):
			w.c.s.courier.event(SkippedLine)
		}
		if k != nil && k.answered() {
			return nil
		}
	}
}

// resume opens a GET stream after an event id. tries counts across calls.
func (w *web) resume(ctx context.Context, last string, retry time.Duration, tries *int) (*http.Response, bool) {
	delay := max(retry, 100*time.Millisecond)
	if retry == 0 {
		delay = w.c.s.limits.RestartMin
	}
	for ; *tries < maxResumes; delay = min(2*delay, 30*time.Second) {
		*tries++
		if !sleep(ctx, w.c.s.clock, delay) {
			return nil, false
		}
		resp, err := w.get(ctx, last)
		if err != nil {
			continue
		}
		if isStream(resp) {
			return resp, true
		}
		resp.Body.Close()
		if resp.StatusCode < 500 {
			return nil, false
		}
	}
	return nil, false
}

func (w *web) get(ctx context.Context, last string) (*http.Response, error) {
	req, err := w.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	return w.client.Do(req)
}

// listen holds the legacy wire's GET stream open, if the server has one.
func (w *web) listen() {
	if w.c.modern.Load() {
		return
	}
	w.wg.Go(func() {
		var last string
		delay := w.c.s.limits.RestartMin
		for again := false; ; {
			resp, err := w.get(w.c.ctx, last)
			if err == nil {
				if isStream(resp) {
					if again {
						w.c.s.unheard()
					} else {
						w.c.s.changes.Add(1)
					}
					again = true
					es := newEvents(resp.Body, w.c.s.limits.Line)
					es.lastID = last
					w.deliver(es, nil)
					delay = w.c.s.limits.RestartMin
					if es.retry > 0 {
						delay = max(es.retry, 100*time.Millisecond)
					}
					last = es.lastID
				}
				resp.Body.Close()
				switch {
				case resp.StatusCode == http.StatusNotFound && w.sessionID() != "" && last != "":
					w.c.die(errSessionGone)
					return
				case !isStream(resp) && resp.StatusCode < 500:
					return // 405 and its like: this server has no such stream
				}
			}
			if !sleep(w.c.ctx, w.c.s.clock, delay) {
				return
			}
			delay = min(2*delay, w.c.s.limits.RestartMax)
		}
	})
}

func (w *web) tell(msg []byte) {
	select {
	case w.tells <- msg:
	default:
		w.c.s.courier.event(DroppedNotice)
	}
}

// teller posts notifications and answers one after the other.
func (w *web) teller() {
	for {
		select {
		case msg := <-w.tells:
			ctx, cancel := timeout(w.c.ctx, w.c.s.clock, w.c.s.limits.Write)
			w.say(ctx, msg)
			cancel()
		case <-w.c.ctx.Done():
			return
		}
	}
}

func (w *web) say(ctx context.Context, msg []byte) error {
	req, err := w.request(ctx, http.MethodPost, msg)
	if err != nil {
		return errors.New("the request could not be built")
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return errors.New("the server cannot be reached")
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, maxErrorBody)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the server answered HTTP %d", resp.StatusCode)
	}
	return nil
}

// close ends the session as the protocol asks and waits for the streams.
func (w *web) close() {
	if w.sessionID() != "" && !errors.Is(w.c.cause(), errSessionGone) {
		ctx, cancel := timeout(context.Background(), w.c.s.clock, deleteTime)
		if req, err := w.request(ctx, http.MethodDelete, nil); err == nil {
			if resp, err := w.client.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		cancel()
	}
	w.wg.Wait()
	w.client.CloseIdleConnections()
}

func isStream(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream"
}

func mediaType(resp *http.Response) string {
	said := resp.Header.Get("Content-Type")
	if said == "application/json" { // as most say it
		return said
	}
	t, _, _ := mime.ParseMediaType(said)
	return t
}

// readBody reads at most limit bytes; over says that there were more.
func readBody(r io.Reader, limit int) (b []byte, over bool, err error) {
	b, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(b) > limit {
		return nil, true, nil
	}
	return b, false, err
}
