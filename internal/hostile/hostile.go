// Package hostile is an MCP server that misbehaves on purpose, for tests. Each
// mode is one fault of those in docs/attacks.md; in everything else the server is a small
// correct one on the legacy wire, with the tools echo and getenv.
//
// It is written by hand on the line and HTTP level, without the words the
// product uses to read and write messages, so that a shared mistake cannot hide.
package hostile

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// modes.txt has the faults, of each what it is, and what is said of it.
//
//go:embed modes.txt
var table string

var modes = func() map[string]map[string]string {
	out := map[string]map[string]string{}
	var last map[string]string
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if fault, told := strings.CutPrefix(line, "\t"); told {
			where, quoted, _ := strings.Cut(fault, " ")
			text, err := strconv.Unquote(quoted)
			if err != nil {
				panic("modes.txt: " + line)
			}
			last[where] = strings.NewReplacer("{RawError}", RawError, "{RawResult}", RawResult).Replace(text)
		} else if name, what, ok := strings.Cut(line, ": "); ok && line[0] != '#' {
			last = map[string]string{"what": what}
			out[name] = last
		}
	}
	return out
}()

// EnvMode is the variable that makes RunIfAsked run.
const EnvMode = "WRIT_HOSTILE"

// RunIfAsked makes this process the hostile server when EnvMode is set, and
// then does not return. A TestMain calls it first.
func RunIfAsked() {
	if mode := os.Getenv(EnvMode); mode != "" {
		os.Exit(run(mode, os.Stdin, os.Stdout))
	}
}

// RawResult is what mode rawresult answers tools/call with.
const RawResult = `{"content":[{"type":"hologram","z":1.50}],"structuredContent":{"n":9007199254740993,"s":"\u0041"},"x-unknown":[1e2,-0.0],"_meta":{"a/b":true}}`

// RawError is what mode errordata answers tools/call with.
const RawError = `{"code":-32099,"message":"no","data":{"n":9007199254740993},"extra":1.0}`

type server struct {
	mode string
	out  *bufio.Writer
	in   *bufio.Reader
}

// run serves one client in a mode and returns the exit code.
func run(mode string, in io.Reader, out io.Writer) int {
	if modes[mode] == nil {
		fmt.Fprintln(os.Stderr, "modes:", strings.Join(slices.Sorted(maps.Keys(modes)), " "))
		return 64
	}
	s := &server{mode: mode, in: bufio.NewReaderSize(in, 1<<20), out: bufio.NewWriter(out)}
	s.say("start", "")
	switch mode {
	case "exitatonce":
		return 3
	case "ignoreeof":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		startGrandchild()
	case "forks":
		startGrandchild()
	case "stderrflood":
		for range 1 << 10 {
			os.Stderr.WriteString(strings.Repeat("e", 1023) + "\n")
		}
		os.Stderr.WriteString("last words\n")
	}
	for {
		raw, err := s.in.ReadBytes('\n')
		if err != nil {
			if mode == "ignoreeof" {
				select {}
			}
			return 0
		}
		var m message
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		if mode == "noreply" && m.Method == "notifications/cancelled" {
			fmt.Fprintf(os.Stderr, "cancelled %s\n", m.Params.RequestID)
		}
		if m.Method == "" || m.ID == nil {
			continue
		}
		if code, end := s.serve(m); end {
			return code
		}
	}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Cursor    string          `json:"cursor"`
		RequestID json.RawMessage `json:"requestId"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (s *server) line(text string) {
	s.out.WriteString(text)
	s.out.WriteByte('\n')
	s.out.Flush()
}

func answer(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}

func forged(id string) string { return answer(id, `{"content":[{"type":"text","text":"forged"}]}`) }

func refusal(id string, code int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text)
}

func initialized(version string) string {
	return `{"protocolVersion":"` + version + `","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"1"}}`
}

const tools = `{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},{"name":"getenv","inputSchema":{"type":"object"}}`

// serve answers one request; end says that the process ends with code.
func (s *server) serve(m message) (code int, end bool) {
	id := string(m.ID)
	if s.say(m.Method, id) {
		return
	}
	switch m.Method {
	case "server/discover":
		if s.mode == "diesonprobe" {
			return 1, true
		}
		if s.mode != "hangsonprobe" {
			s.line(refusal(id, -32601, "Method not found"))
		}
	case "initialize":
		version := map[string]string{"oldversion": "2024-11-05", "badversion": "1999-01-01"}[s.mode]
		s.line(answer(id, initialized(cmp.Or(version, "2025-11-25"))))
	case "ping":
		s.line(answer(id, `{}`))
	case "tools/list":
		s.reply(id, ToolList(s.mode, m.Params.Cursor))
	case "tools/call":
		return s.call(m)
	default:
		s.line(refusal(id, -32601, "Method not found"))
	}
	return
}

// ToolList is the result of tools/list in a mode.
func ToolList(mode, cursor string) string {
	list := tools
	next := ""
	tool := func(name, schema string) string {
		return `{"name":` + strconv.Quote(name) + `,"inputSchema":` + schema + `}`
	}
	switch mode {
	case "loopcursor":
		next = map[string]string{"": "a", "a": "b", "b": "a"}[cursor]
		list = tool("t"+cursor, `{"type":"object"}`)
		if cursor != "" {
			list = ""
		}
	case "endless":
		n, _ := strconv.Atoi(cursor)
		next = strconv.Itoa(n + 1)
		list = tool("t"+next, `{"type":"object"}`)
	case "manyitems":
		var b []string
		for i := range 3000 {
			b = append(b, tool("t"+strconv.Itoa(i), `{"type":"object"}`))
		}
		list = strings.Join(b, ",")
	case "deepschema":
		list = tool("deep", strings.Repeat(`{"type":"object","properties":{"a":`, 40)+`{}`+strings.Repeat(`}}`, 40))
	}
	if text, ok := modes[mode]["tools"]; ok {
		list = strings.NewReplacer("{tools}", tools, "{url}", os.Getenv("HOSTILE_URL")).Replace(text)
	}
	out := `{"tools":[` + list + `]`
	if next != "" {
		out += `,"nextCursor":` + strconv.Quote(next)
	}
	return out + `}`
}

var forgery = regexp.MustCompile(`<(.*?)>`)

// said is the mode's text there, if it has one.
func said(mode, where, id string) (text string, ok bool) {
	text, ok = modes[mode][where]
	n, _ := strconv.ParseInt(id, 10, 64)
	text = strings.NewReplacer("{id}", id, "{next}", strconv.FormatInt(n+1, 10), "{done}", answer(id, done)).Replace(text)
	return forgery.ReplaceAllStringFunc(text, func(id string) string { return forged(id[1 : len(id)-1]) }), ok
}

// say writes the mode's text, and reports whether it has one there.
func (s *server) say(where, id string) bool {
	text, ok := said(s.mode, where, id)
	if ok {
		s.line(text)
	}
	return ok
}

// reply answers, with the mode's fault before or after it.
func (s *server) reply(id, result string) {
	s.say("before", id)
	switch s.mode {
	case "crlf":
		s.line("\r\n\r\n" + answer(id, result) + "\r")
		return
	case "unsolicited":
		for i := range 100 {
			s.line(forged(strconv.Itoa(i)))
			s.line(forged("\"x" + strconv.Itoa(i) + "\""))
		}
	}
	s.line(answer(id, result))
	s.say("after", id)
}

func (s *server) call(m message) (code int, end bool) {
	id := string(m.ID)
	text := func(t string) string {
		b, _ := json.Marshal(t)
		return `{"content":[{"type":"text","text":` + string(b) + `}]}`
	}
	switch s.mode {
	case "deepresult":
		s.line(answer(id, strings.Repeat("[", 5000)+strings.Repeat("]", 5000)))
		return
	case "noreply":
		fmt.Fprintf(os.Stderr, "call %s\n", id)
		return
	case "noread":
		time.Sleep(time.Hour) // select {} alone is a deadlock to the runtime, which ends the process
	case "noiseflood":
		for range 1500 {
			s.line("debug: noise")
		}
	case "notifflood":
		for range 20000 {
			s.out.WriteString(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
		}
		s.out.Flush()
	case "halfline":
		s.out.WriteString(`{"jsonrpc":"2.0","id":` + id + `,"res`)
		s.out.Flush()
		return
	case "drip":
		for _, b := range []byte(answer(id, text(strings.Repeat("x", 1<<20)))) {
			s.out.WriteByte(b)
			if s.out.Flush() != nil {
				return 1, true
			}
			time.Sleep(20 * time.Millisecond)
		}
	case "huge":
		s.out.WriteString(`{"jsonrpc":"2.0","id":` + id + `,"result":{"t":"`)
		endless(s.out)
		s.line(`"}}`)
		return
	case "hugeidlast":
		s.out.WriteString(`{"result":{"t":"`)
		endless(s.out)
		s.line(`"},"jsonrpc":"2.0","id":` + id + `}`)
		return
	case "exit":
		return 1, true
	case "halfexit":
		s.out.WriteString(`{"jsonrpc":"2.0","id":` + id + `,"result":{}`)
		s.out.Flush()
		return 1, true
	case "asks", "elicits":
		s.say("asks", id)
		s.reply(id, text(s.next()))
		return
	case "progress", "lateprogress":
		token := string(m.Params.Meta.Token)
		if s.mode == "lateprogress" {
			token = `"nobody"`
		}
		if token != "" {
			s.line(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1,"total":2.50,"message":"half"}}`)
		}
		s.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working"}}`)
	}
	if m.Params.Name == "getenv" {
		s.reply(id, text(strings.Join(os.Environ(), "\n")))
		return
	}
	s.reply(id, text(string(m.Params.Arguments)))
	return
}

// endless writes 100 MiB, or as much of it as is taken.
func endless(w io.Writer) {
	chunk := strings.Repeat("x", 1<<20)
	for range 100 {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}

// next reads the client's answer to a question and returns it as text.
func (s *server) next() string {
	for {
		raw, err := s.in.ReadBytes('\n')
		if err != nil {
			return "end"
		}
		var m message
		if json.Unmarshal(raw, &m) == nil && m.Method == "" {
			if m.Error != nil {
				return string(m.Error)
			}
			return string(m.Result)
		}
	}
}

// startGrandchild starts a process that outlives its parent and holds its
// output open; its number goes to standard error.
func startGrandchild() {
	cmd := exec.Command("sleep", "600")
	cmd.Stdout = os.Stdout
	if cmd.Start() == nil {
		fmt.Fprintf(os.Stderr, "grandchild %d\n", cmd.Process.Pid)
	}
}
