package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// message is what of a JSON-RPC message matters here.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string `json:"name"`
		ProtocolVersion string `json:"protocolVersion"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

const tools = `{"tools":[` +
	`{"name":"list","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"items":{"type":"array"}}}},` +
	`{"name":"look","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},` +
	`{"name":"mark","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}]}`

const policyText = `pins: optional
collections: { item: {} }
tools:
  tool/list: { effect: read, outputs: [ { at: /items/*/id, label: system, type: id, collection: item } ] }
  tool/look: { effect: read }
  tool/mark: { effect: write, idempotent: true, args: { /id: { role: selector, type: id, collection: item, from: [output] } } }
`

// answer is what the server says to a message, nil for a notification.
func answer(b []byte) []byte {
	var m message
	if json.Unmarshal(b, &m) != nil || m.ID == nil {
		return nil
	}
	result := `{"content":[{"type":"text","text":"ok"}]}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"` + m.Params.ProtocolVersion + `","capabilities":{"tools":{}},"serverInfo":{"name":"tool","version":"1"}}`
	case "tools/list":
		result = tools
	case "tools/call":
		if m.Params.Name == "list" {
			result = `{"content":[],"structuredContent":{"items":[{"id":"item-17"}]}}`
		}
	case "ping":
		result = `{}`
	default:
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// tool is the server that is called: over standard input and output, or over HTTP.
func tool(transport string) error {
	if transport != "http" {
		return lines(os.Stdin, func(b []byte) error {
			if a := answer(b); a != nil {
				_, err := os.Stdout.Write(append(a, '\n'))
				return err
			}
			return nil
		})
	}
	return listen(func(w http.ResponseWriter, b []byte, _ http.Header) {
		reply(w, http.StatusOK, answer(b))
	})
}

// relay is the least that a proxy can do.
func relay(transport string, to []string) error {
	if transport == "http" {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
		return listen(func(w http.ResponseWriter, b []byte, h http.Header) {
			var m message
			if json.Unmarshal(b, &m) != nil {
				reply(w, http.StatusBadRequest, nil)
				return
			}
			_, a, err := post(client, to[0], h.Get("Mcp-Session-Id"), b)
			if err != nil || len(a) > 0 && json.Unmarshal(a, &m) != nil {
				reply(w, http.StatusBadGateway, nil)
				return
			}
			reply(w, http.StatusOK, a)
		})
	}
	cmd, in, out, err := piped(to)
	if err != nil {
		return err
	}
	on := func(w io.Writer) func([]byte) error {
		return func(b []byte) error {
			var m message
			if err := json.Unmarshal(b, &m); err != nil {
				return err
			}
			_, err := w.Write(append(b, '\n'))
			return err
		}
	}
	go func() {
		lines(os.Stdin, on(in))
		in.Close()
	}()
	err = lines(out, on(os.Stdout))
	cmd.Wait()
	return err
}

// lines calls f with each line, without its end.
func lines(r io.Reader, f func([]byte) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		b, err := br.ReadBytes('\n')
		if err != nil {
			return nil
		}
		if err := f(b[:len(b)-1]); err != nil {
			return err
		}
	}
}

// listen serves posts on a loopback port, and says which.
func listen(f func(w http.ResponseWriter, body []byte, h http.Header)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if r.Method != http.MethodPost || err != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		f(w, b, r.Header)
	}))
}

func reply(w http.ResponseWriter, status int, b []byte) {
	if b == nil {
		if status == http.StatusOK {
			status = http.StatusAccepted
		}
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(b)
}
