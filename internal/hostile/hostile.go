// Package hostile is an MCP server that misbehaves on purpose, for tests. Each
// mode is one fault of those in docs/attacks.md; in everything else the server is a small
// correct one on the legacy wire, with the tools echo and getenv.
//
// It is written by hand on the line and HTTP level, without the words the
// product uses to read and write messages, so that a shared mistake cannot hide.
package hostile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Modes says what each stdio mode does.
var Modes = map[string]string{
	"plain":         "behaves",
	"banner":        "U04: text before the first message",
	"banner-json":   "U04: JSON log lines before the first message",
	"noise":         "U04: a line that is not JSON before each answer",
	"noiseflood":    "U04: 1,500 lines that are not JSON before an answer to tools/call",
	"pretty":        "section 1: each answer also pretty-printed over several lines, first",
	"twoobjects":    "section 1: two objects on one line, then the answer",
	"batch":         "W08: the answer inside an array, then the answer",
	"bom":           "section 1: an answer after a byte order mark, then the answer",
	"nul":           "section 1: an answer with a NUL, then the answer",
	"badutf8":       "section 1: an answer that is not UTF-8, then nothing",
	"surrogate":     "W05: an answer with a lone surrogate, then nothing",
	"crlf":          "section 1: blank lines and CRLF",
	"doublereply":   "P22: two different answers",
	"wrongid":       "P22: an answer with another id first",
	"strid":         "P22: an answer with the id as a string first",
	"floatid":       "P22: an answer with the id as 1.0 first",
	"unsolicited":   "P22: answers to requests nobody made",
	"bothmembers":   "W09: an answer with result and error",
	"dupkeys":       "W01: an answer whose result has a member twice",
	"escapedkeys":   "W02: the same with an escape",
	"deepresult":    "W15: a result nested 5,000 deep",
	"bignumber":     "W16: a number 1e999999999 in the result",
	"dupnames":      "T04: two tools of one name",
	"noname":        "T04: a tool without a name",
	"ansi":          "T05: control characters in a name",
	"loopcursor":    "T13: pages that lead back to themselves",
	"endless":       "T13: a new cursor for ever",
	"manyitems":     "T13: 3,000 tools on one page",
	"deepschema":    "T09: a schema nested 90 deep",
	"remoteref":     "T08: a $ref to the URL in $HOSTILE_URL",
	"notifflood":    "T14: 20,000 list_changed before an answer",
	"ignoreeof":     "U05: ignores the end of input and SIGTERM, and starts a child that does too",
	"forks":         "U05: starts a child and ends with its input",
	"noreply":       "U06: never answers tools/call, and says on standard error what it was asked",
	"halfline":      "U06: half an answer, then silence",
	"drip":          "U06: an answer byte by byte, never finished",
	"noread":        "section 1: stops reading its input",
	"huge":          "U07: a result of 100 MiB",
	"hugeidlast":    "U07: the same with the id at its end",
	"exit":          "U08: ends at tools/call",
	"exitatonce":    "U08: ends at once",
	"halfexit":      "section 1: ends in the middle of a line",
	"stderrflood":   "section 1: 1 MiB on standard error",
	"asks":          "T16: asks for sampling inside tools/call, whatever was declared",
	"elicits":       "asks a person inside tools/call and returns the answer",
	"progress":      "progress and a log message before the answer",
	"lateprogress":  "P23: progress for a token nobody gave",
	"errordata":     "section 3: an error with data and unknown members",
	"errorstring":   "section 3: an error whose code is a string",
	"rawresult":     "a result whose bytes must survive: big numbers, unknown members and blocks",
	"hangsonprobe":  "never answers server/discover",
	"diesonprobe":   "ends at server/discover",
	"errorsonprobe": "answers server/discover with an error of its own invention",
	"oldversion":    "answers initialize with 2024-11-05",
	"badversion":    "answers initialize with a version nobody knows",
	"refuses":       "answers initialize with an error",
}

// EnvMode is the variable that makes RunIfAsked run.
const EnvMode = "WRIT_HOSTILE"

// RunIfAsked makes this process the hostile server when EnvMode is set, and
// then does not return. A TestMain calls it first.
func RunIfAsked() {
	if mode := os.Getenv(EnvMode); mode != "" {
		os.Exit(Run(mode, os.Stdin, os.Stdout))
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

// Run serves one client in a mode and returns the exit code.
func Run(mode string, in io.Reader, out io.Writer) int {
	if Modes[mode] == "" {
		fmt.Fprintln(os.Stderr, "modes:", strings.Join(slices.Sorted(maps.Keys(Modes)), " "))
		return 64
	}
	s := &server{mode: mode, in: bufio.NewReaderSize(in, 1<<20), out: bufio.NewWriter(out)}
	switch mode {
	case "exitatonce":
		return 3
	case "banner":
		s.line("Welcome to the server! \x1b[31mlistening\x1b[0m")
		s.line("")
	case "banner-json":
		s.line(`{"level":"info","msg":"started","id":1}`)
	case "ignoreeof":
		ignoreSignals()
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
	switch m.Method {
	case "server/discover":
		switch s.mode {
		case "hangsonprobe":
			return
		case "diesonprobe":
			return 1, true
		case "errorsonprobe":
			s.line(refusal(id, 0, "Received request before initialization was complete"))
			return
		}
		s.line(refusal(id, -32601, "Method not found"))
	case "initialize":
		switch s.mode {
		case "oldversion":
			s.line(answer(id, initialized("2024-11-05")))
		case "badversion":
			s.line(answer(id, initialized("1999-01-01")))
		case "refuses":
			s.line(refusal(id, -32000, "no"))
		default:
			s.line(answer(id, initialized("2025-11-25")))
		}
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
	case "dupnames":
		list += "," + tool("echo", `{"type":"object","properties":{"evil":{"type":"string"}}}`)
	case "noname":
		list += `,{"inputSchema":{"type":"object"}}`
	case "ansi":
		list = `{"name":"a\u001b[2J","description":"\u001b]52;c;AAAA\u0007","inputSchema":{"type":"object"}}`
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
	case "remoteref":
		u := os.Getenv("HOSTILE_URL")
		list = `{"name":"ref","icons":[{"src":` + strconv.Quote(u+"/icon.png") + `}],"inputSchema":{"$schema":` + strconv.Quote(u+"/meta.json") + `,"type":"object","properties":{"a":{"$ref":` + strconv.Quote(u+"/schema.json") + `}}}}`
	}
	out := `{"tools":[` + list + `]`
	if next != "" {
		out += `,"nextCursor":` + strconv.Quote(next)
	}
	return out + `}`
}

// reply answers, with the mode's fault before or after it.
func (s *server) reply(id, result string) {
	n, _ := strconv.ParseInt(id, 10, 64)
	evil := `{"content":[{"type":"text","text":"forged"}]}`
	good := answer(id, result)
	switch s.mode {
	case "noise":
		s.line("listening on :8080")
	case "pretty":
		s.line("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": " + id + ",\n  \"result\": {}\n}")
	case "twoobjects":
		s.line(answer(id, evil) + answer(id, evil))
	case "batch":
		s.line("[" + answer(strconv.FormatInt(n+1, 10), evil) + "]")
	case "bom":
		s.line("\xef\xbb\xbf" + answer("7", evil))
	case "nul":
		s.line("\x00" + answer("7", evil))
	case "crlf":
		s.line("\r\n\r\n" + good + "\r")
		return
	case "wrongid":
		s.line(answer(strconv.FormatInt(n+1, 10), evil))
	case "strid":
		s.line(answer(`"`+id+`"`, evil))
	case "floatid":
		s.line(answer(id+".0", evil))
	case "unsolicited":
		for i := range 100 {
			s.line(answer(strconv.Itoa(i), evil))
			s.line(answer("\"x"+strconv.Itoa(i)+"\"", evil))
		}
	}
	s.line(good)
	if s.mode == "doublereply" {
		s.line(answer(id, evil))
	}
}

func (s *server) call(m message) (code int, end bool) {
	id := string(m.ID)
	text := func(t string) string {
		b, _ := json.Marshal(t)
		return `{"content":[{"type":"text","text":` + string(b) + `}]}`
	}
	switch s.mode {
	case "noreply":
		fmt.Fprintf(os.Stderr, "call %s\n", id)
		return
	case "noread":
		select {}
	case "noiseflood":
		for range 1500 {
			s.line("debug: noise")
		}
	case "badutf8":
		s.line(answer(id, "{\"content\":\"\xff\"}"))
		return
	case "surrogate":
		s.line(answer(id, `{"content":"\ud800"}`))
		return
	case "bothmembers":
		s.line(`{"jsonrpc":"2.0","id":` + id + `,"result":{},"error":{"code":1,"message":""}}`)
		return
	case "dupkeys":
		s.line(answer(id, `{"content":[],"content":[]}`))
		return
	case "escapedkeys":
		s.line(answer(id, `{"content":[],"c\u006fntent":[]}`))
		return
	case "deepresult":
		s.line(answer(id, strings.Repeat("[", 5000)+strings.Repeat("]", 5000)))
		return
	case "bignumber":
		s.line(answer(id, `{"content":[],"n":1e999999999}`))
		return
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
	case "huge", "hugeidlast":
		big := func() {
			chunk := strings.Repeat("x", 1<<20)
			for range 100 {
				s.out.WriteString(chunk)
			}
		}
		if s.mode == "huge" {
			s.out.WriteString(`{"jsonrpc":"2.0","id":` + id + `,"result":{"t":"`)
			big()
			s.line(`"}}`)
		} else {
			s.out.WriteString(`{"result":{"t":"`)
			big()
			s.line(`"},"jsonrpc":"2.0","id":` + id + `}`)
		}
		return
	case "exit":
		return 1, true
	case "halfexit":
		s.out.WriteString(`{"jsonrpc":"2.0","id":` + id + `,"result":{}`)
		s.out.Flush()
		return 1, true
	case "asks":
		s.line(`{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
		s.reply(id, text(s.next()))
		return
	case "elicits":
		s.line(`{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}}`)
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
	case "errordata":
		s.line(`{"jsonrpc":"2.0","id":` + id + `,"error":` + RawError + `}`)
		return
	case "errorstring":
		s.line(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":"E","message":1}}`)
		return
	case "rawresult":
		s.reply(id, RawResult)
		return
	}
	if m.Params.Name == "getenv" {
		s.reply(id, text(strings.Join(os.Environ(), "\n")))
		return
	}
	s.reply(id, text(string(m.Params.Arguments)))
	return
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
