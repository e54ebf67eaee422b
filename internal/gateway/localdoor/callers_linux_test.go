package localdoor

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

// With DOOR_CALLS set this binary makes a request there, says so, and stays until its input
// ends.
func init() {
	if at := os.Getenv("DOOR_CALLS"); at != "" {
		each := http.Transport{DisableKeepAlives: true} // known though it holds none when it is asked for
		resp, err := (&http.Client{Transport: &each}).Get(at)
		if err == nil {
			io.Copy(os.Stdout, resp.Body)
			io.Copy(io.Discard, os.Stdin)
		}
		os.Exit(0)
	}
}

func listening(t testing.TB) (c *Callers, at string) {
	t.Helper()
	c = new(Callers)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" && !c.Heard(r.Context()) {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "heard")
	}))
	c.Watch(s.Config)
	s.Start()
	t.Cleanup(s.Close)
	return c, s.URL
}

// calling is a process that made a request.
func calling(t *testing.T, at string) (pid int, end func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{"DOOR_CALLS=" + at}
	in, ierr := cmd.StdinPipe()
	out, oerr := cmd.StdoutPipe()
	if ierr != nil || oerr != nil || cmd.Start() != nil {
		t.Fatal("it was not started")
	}
	end = func() { in.Close(); cmd.Wait() }
	t.Cleanup(end)
	if b := make([]byte, 5); !read(out, b) || string(b) != "heard" {
		t.Fatalf("it was told %q", b)
	}
	return cmd.Process.Pid, end
}

func read(r io.Reader, b []byte) bool { _, err := io.ReadFull(r, b); return err == nil }

// TestCallers: who spoke to the server is known, and stays so when it is gone; who asked
// for something else is not.
func TestCallers(t *testing.T) {
	c, at := listening(t)
	client, end := calling(t, at+"/mcp")
	other, _ := calling(t, at+"/")
	knows := func() (ids []int) {
		t.Helper()
		all, err := c.all(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			ids = append(ids, o.pid)
		}
		return ids
	}
	if got := knows(); !slices.Equal(got, []int{client}) {
		t.Errorf("%v are known, not %d; %d asked for another page", got, client, other)
	}
	end()
	if got := knows(); !slices.Equal(got, []int{client}) || c.known[0].runs() {
		t.Errorf("%v are known once it is gone", got)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	c.mu.Lock()
	c.looking, c.next = true, make(chan struct{}) // a look that does not end
	c.mu.Unlock()
	if err := Apart(context.WithValue(context.WithValue(gone, peerKey{}, peer{process: process{pid: os.Getpid()}}), callersKey{}, c)); err != ErrKin {
		t.Errorf("before the look has ended: %v", err)
	}
}

// TestOneLook: a connection is looked at once, however many requests it brings.
func TestOneLook(t *testing.T) {
	c, at := listening(t)
	for range 50 {
		resp, err := http.Get(at + "/mcp")
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if _, err := c.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looks > 2 { // and that of the answer
		t.Errorf("%d looks at one connection", c.looks)
	}
	if len(c.known) > 0 {
		t.Errorf("it knows itself: %v", c.known)
	}
	on := context.WithValue(t.Context(), connectionKey{}, func() (k *connection) {
		for _, k = range c.open {
		}
		return k
	}())
	if n := testing.AllocsPerRun(100, func() { c.Heard(on) }); n > 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// TestRemember: where there are too many, whoever is gone is forgotten first; what descends
// from one that is known and runs is not kept besides.
func TestRemember(t *testing.T) {
	runs, err := originOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	_, at := listening(t)
	client, _ := calling(t, at)
	if got, _ := remember([]origin{runs}, []int{client, os.Getpid()}); len(got) != 1 {
		t.Errorf("a child of a known one: %v", got)
	}
	above, err := originOf(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	reused := origin{process: process{above.pid, above.started + "0"}} // the id is another's now
	full := []origin{reused}
	for n := len(full); n < maxCallers; n++ {
		full = append(full, origin{process: process{1 << 30, strconv.Itoa(n)}})
	}
	got, over := remember(full, []int{client})
	if over || len(got) != maxCallers || got[0].is(reused) || got[len(got)-1].pid != client {
		t.Errorf("%d are known, the last %v", len(got), got[len(got)-1])
	}
	if again, _ := remember(got, []int{client}); !slices.EqualFunc(again, got, origin.is) {
		t.Error("one that is known was remembered twice")
	}
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil || child.Start() != nil {
		t.Fatal("it was not started")
	}
	defer child.Wait()
	defer in.Close()
	got[0] = got[len(got)-1] // it runs, and is the oldest
	if again, _ := remember(got, []int{child.Process.Pid}); len(again) != maxCallers || !again[0].is(got[0]) || again[1].is(got[1]) {
		t.Error("one that runs was forgotten before one that is gone")
	}
	for i := range got {
		got[i] = got[len(got)-1]
	}
	if again, over := remember(got, []int{child.Process.Pid}); !over || !slices.EqualFunc(again, got, origin.is) {
		t.Error("one that runs was forgotten for another")
	}
	c := &Callers{full: true}
	if err := Apart(context.WithValue(context.WithValue(t.Context(), peerKey{}, peer{process: process{pid: os.Getpid()}}), callersKey{}, c)); err != errMany {
		t.Errorf("one was not remembered, and an answer is heard: %v", err)
	}
}

// TestGoneBeforeServed: a process that had closed its connection when it was looked for is
// not served.
func TestGoneBeforeServed(t *testing.T) {
	c, served := new(Callers), make(chan bool, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served <- c.Heard(r.Context()) }))
	c.Watch(s.Config)
	s.Start()
	defer s.Close()
	for _, closes := range []bool{true, false} {
		c.mu.Lock() // nothing is looked at until it is closed
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "GET /mcp HTTP/1.1\r\nHost: h\r\n\r\n")
		if closes {
			conn.Close()
		}
		c.mu.Unlock()
		if got := <-served; got == closes {
			t.Errorf("closed %v, served %v", closes, got)
		}
		conn.Close()
	}
}

// TestAddresses: as /proc/net writes them on this machine.
func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"0000000000000000FFFF00000100007F:0050": "127.0.0.1:80",
		"00000000000000000000000001000000:0050": "[::1]:80",
		"0100007F":                              "",
		"0100007F:FFFFF":                        "",
		"0100007:0050":                          "",
		"01:0050":                               "",
		"local_address:00":                      "",
	} {
		got, ok := addressOf([]byte(text))
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %v %v", text, got, ok)
		}
	}
}

// TestHooksAreKept: who watches the connections of a server before Watch and Know go on to.
func TestHooksAreKept(t *testing.T) {
	type before struct{}
	states := make(chan http.ConnState, 16)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(before{}) == nil || r.Context().Value(connectionKey{}) == nil {
			t.Error("a context was replaced")
		}
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, before{}, true)
	}
	s.Config.ConnState = func(_ net.Conn, now http.ConnState) { states <- now }
	new(Callers).Watch(s.Config)
	Know(s.Config)
	// Not s.Start, which keeps the states to itself too.
	go s.Config.Serve(s.Listener)
	defer s.Config.Close()
	resp, err := http.Get("http://" + s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, want := range []http.ConnState{http.StateNew, http.StateActive} {
		if now := <-states; now != want {
			t.Errorf("%v, not %v", now, want)
		}
	}
}
