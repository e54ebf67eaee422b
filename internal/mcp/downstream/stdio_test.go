package downstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
)

// stdioClient is the other end of a ServeStdio.
type stdioClient struct {
	in   *io.PipeWriter
	out  *bufio.Reader
	pipe *io.PipeReader
	done chan error
}

func startStdio(ctx context.Context, f *fake, o StdioOptions) *stdioClient {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	o.Refused = f.hook
	c := &stdioClient{inW, bufio.NewReaderSize(outR, 1<<20), outR, make(chan error, 1)}
	go func() {
		err := ServeStdio(ctx, f, inR, outW, o)
		outW.Close()
		c.done <- err
	}()
	return c
}

func (c *stdioClient) say(s string) { io.WriteString(c.in, s+"\n") }

func (c *stdioClient) hear() string {
	s, err := c.out.ReadString('\n')
	if err != nil {
		return "end: " + err.Error()
	}
	return strings.TrimSuffix(s, "\n")
}

// TestStdioTranscripts runs testdata/stdio/*.txt. "> " is a line from the
// client, ">q " one in Go strings, ">half " one without its end; "< " is what
// is answered until the connection is idle at an empty line, "! " what was
// refused, in order.
func TestStdioTranscripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/stdio/*.txt")
	if len(files) == 0 {
		t.Fatal("no transcripts")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := transcript(t, string(raw))
			if *update {
				os.WriteFile(file, []byte(got), 0o644)
			} else if got != string(raw) {
				t.Errorf("got\n%s\nwant\n%s", got, raw)
			}
		})
	}
}

// transcript plays the client's lines and returns the file as it should be.
func transcript(t *testing.T, file string) (got string) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := startStdio(t.Context(), f, StdioOptions{MaxLine: 64 << 10})
		heard := make(chan string, 1000)
		go func() {
			for s := c.hear(); !strings.HasPrefix(s, "end: "); s = c.hear() {
				heard <- s
			}
			close(heard)
		}()
		var b strings.Builder
		flush := func() {
			synctest.Wait()
			for {
				select {
				case s, ok := <-heard:
					if ok {
						fmt.Fprintf(&b, "< %s\n", s)
						continue
					}
				default:
				}
				break
			}
			for _, r := range f.takeRefused() {
				fmt.Fprintf(&b, "! %s\n", r.Why)
			}
		}
		for line := range strings.Lines(file) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case strings.HasPrefix(line, "< "), strings.HasPrefix(line, "! "):
				continue
			case strings.HasPrefix(line, "> "):
				c.say(line[2:])
			case strings.HasPrefix(line, ">q "):
				c.say(expand(line[3:]))
			case strings.HasPrefix(line, ">half "):
				io.WriteString(c.in, line[6:])
				c.in.Close()
			case line == "":
				flush()
			}
			fmt.Fprintln(&b, line)
		}
		c.in.Close()
		flush()
		if err := <-c.done; err != nil {
			t.Errorf("ended with %v", err)
		}
		if n := f.open(); n != 0 {
			t.Errorf("%d sessions left open", n)
		}
		got = b.String()
	})
	return got
}

const greet = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}}}}`

func callLine(id, name string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `"}}`
}

func modernLine(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// inStdio runs a test against a stdio connection in a bubble.
func inStdio(t *testing.T, o StdioOptions, test func(t *testing.T, f *fake, c *stdioClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := startStdio(ctx, f, o)
		test(t, f, c)
		c.in.Close()
		c.pipe.Close()
	})
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestW07IDReuseWhileOpen(t *testing.T) {
	inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
		c.say(greet)
		c.hear()
		c.say(callLine("1", "wait"))
		<-f.started
		c.say(callLine("1", "echo"))
		want(t, c.hear(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"this request id is still in use"}}`)
		c.say(callLine(`"1"`, "echo")) // a string is another id
		want(t, c.hear(), `{"jsonrpc":"2.0","id":"1","result":{"content":[],"structuredContent":null}}`)
		close(f.release) // the first goes on
		want(t, c.hear(), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"released"}]}}`)
		c.say(callLine("1", "echo")) // and the id is free again
		want(t, c.hear(), `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":null}}`)
	})
}

func TestStdioCancelled(t *testing.T) {
	inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
		c.say(greet)
		c.hear()
		c.say(callLine(`"a"`, "wait"))
		<-f.started
		c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"x"}}`)
		if err := <-f.ended; !errors.Is(err, errCancelled) {
			t.Errorf("ended by %v", err)
		}
		c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`) // no answer to "a" before this one
		want(t, c.hear(), `{"jsonrpc":"2.0","id":2,"result":{}}`)
	})
}

func TestStdioAsksTheClient(t *testing.T) {
	inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
		c.say(greet)
		c.hear()
		c.say(callLine("1", "ask"))
		q := c.hear()
		id := string(strictjson.Get([]byte(q), "id"))
		if m, _ := strictjson.Text(strictjson.Get([]byte(q), "method")); m != "elicitation/create" || id == "" {
			t.Fatalf("got %s", q)
		}
		c.say(`{"jsonrpc":"2.0","id":"` + id + `","result":{"action":"wrong type of id"}}`) // P22
		c.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"n":1.0}}}`)
		want(t, c.hear(), `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"answer":{"action":"accept","content":{"n":1.0}}}}}`)
		c.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"twice"}}`)
		synctest.Wait()
		if r := f.takeRefused(); len(r) != 2 || r[0].Why != WhyUnasked || r[1].Why != WhyUnasked {
			t.Errorf("refused %v", r)
		}
	})
}

func TestStdioQuestionTimesOut(t *testing.T) {
	inStdio(t, StdioOptions{Patience: time.Minute}, func(t *testing.T, f *fake, c *stdioClient) {
		c.say(greet)
		c.hear()
		c.say(callLine("1", "ask"))
		id := string(strictjson.Get([]byte(c.hear()), "id"))
		want(t, c.hear(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
		want(t, c.hear(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the client did not answer"}}`)
	})
}

func TestStdioEndOfInput(t *testing.T) {
	t.Run("in flight finishes", func(t *testing.T) {
		inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
			c.say(greet)
			c.hear()
			c.say(callLine("1", "wait"))
			<-f.started
			c.in.Close()
			synctest.Wait()
			close(f.release)
			want(t, c.hear(), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"released"}]}}`)
			if err := <-c.done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("after the grace it is cancelled", func(t *testing.T) {
		inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
			c.say(greet)
			c.hear()
			c.say(callLine("1", "wait"))
			<-f.started
			start := time.Now()
			c.in.Close()
			go c.hear()
			if err := <-c.done; err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d != 5*time.Second {
				t.Errorf("ended after %v of the bubble's clock", d)
			}
			if err := <-f.ended; !errors.Is(err, errEnded) {
				t.Errorf("cancelled by %v", err)
			}
		})
	})
	t.Run("a question fails at once", func(t *testing.T) {
		inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
			c.say(greet)
			c.hear()
			c.say(callLine("1", "ask"))
			c.hear()
			c.in.Close()
			want(t, c.hear(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the client did not answer"}}`)
			if err := <-c.done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("at once", func(t *testing.T) {
		inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
			c.in.Close()
			if err := <-c.done; err != nil {
				t.Error(err)
			}
		})
	})
}

func TestStdioOutputClosed(t *testing.T) {
	inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
		c.say(greet)
		c.hear()
		c.say(callLine("1", "wait"))
		<-f.started
		c.pipe.Close()
		c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if err := <-c.done; !errors.Is(err, errOutput) {
			t.Errorf("ended with %v", err)
		}
		if err := <-f.ended; !errors.Is(err, errOutput) {
			t.Errorf("the call ended with %v", err)
		}
	})
}

// TestStdioSlowReader: a client that does not read blocks its own calls, loses
// nothing, and does not keep us from ending.
func TestStdioSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		ctx, cancel := context.WithCancel(t.Context())
		c := startStdio(ctx, f, StdioOptions{})
		c.say(greet)
		go func() {
			for i := range 100 {
				c.say(callLine(fmt.Sprint(i+1), "echo"))
			}
		}()
		synctest.Wait() // everything is blocked on us
		seen := map[string]bool{}
		for range 101 {
			seen[string(strictjson.Get([]byte(c.hear()), "id"))] = true
		}
		if len(seen) != 101 {
			t.Errorf("%d answers", len(seen))
		}
		go func() {
			for i := range 100 {
				c.say(callLine(fmt.Sprint(i+1), "echo"))
			}
		}()
		synctest.Wait()
		cancel()
		if err := <-c.done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		c.pipe.Close()
		c.in.Close()
	})
}

// TestStdioEndsInPeace: told to end, it takes no further line, and what was begun is
// answered where that takes no longer than Grace.
func TestStdioEndsInPeace(t *testing.T) {
	for _, inTime := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			ctx, cancel := context.WithCancel(t.Context())
			c := startStdio(ctx, f, StdioOptions{})
			c.say(greet)
			c.hear()
			c.say(callLine("1", "wait"))
			<-f.started
			cancel()
			synctest.Wait()
			if inTime {
				close(f.release)
				want(t, c.hear(), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"released"}]}}`)
			}
			if err := <-c.done; !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
			c.pipe.Close()
			c.in.Close()
		})
	}
}

func TestStdioTooManyOpen(t *testing.T) {
	inStdio(t, StdioOptions{MaxOpen: 2}, func(t *testing.T, f *fake, c *stdioClient) {
		c.say(greet)
		c.hear()
		c.say(callLine("1", "wait"))
		c.say(callLine("2", "wait"))
		c.say(callLine("3", "wait"))
		want(t, c.hear(), `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"too many open requests, streams or sessions; close some or try later"}}`)
		close(f.release)
		c.hear()
		c.hear()
	})
}

func TestStdioNotifications(t *testing.T) {
	inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
		c.say(greet)
		c.hear()
		f.tell("notifications/tools/list_changed", "") // nobody listens before initialized
		c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.say(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		synctest.Wait()
		f.tell("notifications/resources/updated", `{"uri":"a://b"}`)
		want(t, c.hear(), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}`)
		f.tell("tools/call", `{}`) // not a notification: never sent
		f.tell("notifications/tools/list_changed", "")
		want(t, c.hear(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	})
}

// TestT14NotificationFlood: what waits is not queued twice, and what does not
// fit is dropped and told.
func TestT14NotificationFlood(t *testing.T) {
	q := newQueue(3)
	for range 20000 {
		q.push("notifications/tools/list_changed", nil)
	}
	for i := range 5 {
		if ok := q.push("notifications/message", []byte{byte(i)}); ok != (i < 2) {
			t.Errorf("push %d: %v", i, ok)
		}
	}
	n := 0
	for _, ok := q.Pop(); ok; _, ok = q.Pop() {
		n++
	}
	if n != 3 {
		t.Errorf("%d wait", n)
	}
}

func TestStdioListen(t *testing.T) {
	inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
		f.subbed = make(chan Listener, 1)
		c.say(modernLine(`"L"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a://b"]},`))
		want(t, c.hear(), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://b"]}}}`)
		if l := <-f.subbed; l.Session == nil || l.Session.PublicID() != "s_1" {
			t.Errorf("listener %+v", l)
		}
		f.tell("notifications/prompts/list_changed", "") // not asked for
		f.tell("notifications/resources/updated", `{"uri":"x://y"}`)
		f.tell("notifications/resources/updated", `{"uri":"a://b","_meta":{"k":1.0,"io.modelcontextprotocol/subscriptionId":"forged"}}`)
		want(t, c.hear(), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L","k":1.0},"uri":"a://b"}}`)
		c.say(modernLine(`"L"`, "tools/list", ``)) // the id is in use
		want(t, c.hear(), `{"jsonrpc":"2.0","id":"L","error":{"code":-32600,"message":"this request id is still in use"}}`)
		c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"L"}}`)
		synctest.Wait()
		f.tell("notifications/tools/list_changed", "")
		c.say(modernLine(`2`, "tools/call", `"name":"who",`))
		want(t, c.hear(), `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"local s_1 2026-07-28 "}]}}`)
		c.say(modernLine(`"M"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`))
		c.hear()
		c.in.Close() // we end it: it is answered
		want(t, c.hear(), `{"jsonrpc":"2.0","id":"M","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"M"}}}`)
		if err := <-c.done; err != nil {
			t.Error(err)
		}
	})
}

func TestStdioSessionCannotBeOpened(t *testing.T) {
	inStdio(t, StdioOptions{}, func(t *testing.T, f *fake, c *stdioClient) {
		f.fail = true
		c.say(greet)
		want(t, c.hear(), `{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"a session cannot be opened now; try again"}}`)
		f.fail = false
		c.say(greet)
		if s := c.hear(); !strings.Contains(s, `"protocolVersion":"2025-11-25"`) {
			t.Errorf("got %s", s)
		}
	})
}

func TestStdioJoinsASession(t *testing.T) {
	f := newFake()
	s := f.mint("secret", "local")
	synctest.Test(t, func(t *testing.T) {
		c := startStdio(t.Context(), f, StdioOptions{Session: s})
		c.say(modernLine(`2`, "tools/call", `"name":"who",`))
		want(t, c.hear(), `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"local s_secret 2026-07-28 "}]}}`)
		c.in.Close()
		<-c.done
		if f.open() != 1 || f.opened != 0 {
			t.Error("a session it joined is not its own to open or close")
		}
	})
}
