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

// mode is one fault. Of what is said before, instead of and after an answer, {id}
// is the request's and {next} the one after it; instead is of tools/call alone.
// Faults that are no text are in serve, reply and call.
type mode struct {
	what                   string
	before, instead, after string
}

var modes = map[string]mode{
	"plain":         {what: "behaves"},
	"banner":        {what: "U04: text before the first message"},
	"banner-json":   {what: "U04: JSON log lines before the first message"},
	"noise":         {what: "U04: a line that is not JSON before each answer", before: "listening on :8080"},
	"noiseflood":    {what: "U04: 1,500 lines that are not JSON before an answer to tools/call"},
	"pretty":        {what: "section 1: each answer also pretty-printed over several lines, first", before: "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": {id},\n  \"result\": {}\n}"},
	"twoobjects":    {what: "section 1: two objects on one line, then the answer", before: forged("{id}") + forged("{id}")},
	"batch":         {what: "W08: the answer inside an array, then the answer", before: "[" + forged("{next}") + "]"},
	"bom":           {what: "section 1: an answer after a byte order mark, then the answer", before: "\xef\xbb\xbf" + forged("7")},
	"nul":           {what: "section 1: an answer with a NUL, then the answer", before: "\x00" + forged("7")},
	"badutf8":       {what: "section 1: an answer that is not UTF-8, then nothing", instead: answer("{id}", "{\"content\":\"\xff\"}")},
	"surrogate":     {what: "W05: an answer with a lone surrogate, then nothing", instead: answer("{id}", `{"content":"\ud800"}`)},
	"crlf":          {what: "section 1: blank lines and CRLF"},
	"doublereply":   {what: "P22: two different answers", after: forged("{id}")},
	"wrongid":       {what: "P22: an answer with another id first", before: forged("{next}")},
	"strid":         {what: "P22: an answer with the id as a string first", before: forged(`"{id}"`)},
	"floatid":       {what: "P22: an answer with the id as 1.0 first", before: forged("{id}.0")},
	"unsolicited":   {what: "P22: answers to requests nobody made"},
	"bothmembers":   {what: "W09: an answer with result and error", instead: `{"jsonrpc":"2.0","id":{id},"result":{},"error":{"code":1,"message":""}}`},
	"dupkeys":       {what: "W01: an answer whose result has a member twice", instead: answer("{id}", `{"content":[],"content":[]}`)},
	"escapedkeys":   {what: "W02: the same with an escape", instead: answer("{id}", `{"content":[],"c\u006fntent":[]}`)},
	"deepresult":    {what: "W15: a result nested 5,000 deep", instead: answer("{id}", strings.Repeat("[", 5000)+strings.Repeat("]", 5000))},
	"bignumber":     {what: "W16: a number 1e999999999 in the result", instead: answer("{id}", `{"content":[],"n":1e999999999}`)},
	"dupnames":      {what: "T04: two tools of one name"},
	"noname":        {what: "T04: a tool without a name"},
	"ansi":          {what: "T05: control characters in a name"},
	"loopcursor":    {what: "T13: pages that lead back to themselves"},
	"endless":       {what: "T13: a new cursor for ever"},
	"manyitems":     {what: "T13: 3,000 tools on one page"},
	"deepschema":    {what: "T09: a schema nested 90 deep"},
	"remoteref":     {what: "T08: a $ref to the URL in $HOSTILE_URL"},
	"notifflood":    {what: "T14: 20,000 list_changed before an answer"},
	"ignoreeof":     {what: "U05: ignores the end of input and SIGTERM, and starts a child that does too"},
	"forks":         {what: "U05: starts a child and ends with its input"},
	"noreply":       {what: "U06: never answers tools/call, and says on standard error what it was asked"},
	"halfline":      {what: "U06: half an answer, then silence"},
	"drip":          {what: "U06: an answer byte by byte, never finished"},
	"noread":        {what: "section 1: stops reading its input"},
	"huge":          {what: "U07: a result of 100 MiB"},
	"hugeidlast":    {what: "U07: the same with the id at its end"},
	"exit":          {what: "U08: ends at tools/call"},
	"exitatonce":    {what: "U08: ends at once"},
	"halfexit":      {what: "section 1: ends in the middle of a line"},
	"stderrflood":   {what: "section 1: 1 MiB on standard error"},
	"asks":          {what: "T16: asks for sampling inside tools/call, whatever was declared"},
	"elicits":       {what: "asks a person inside tools/call and returns the answer"},
	"progress":      {what: "progress and a log message before the answer"},
	"lateprogress":  {what: "P23: progress for a token nobody gave"},
	"errordata":     {what: "section 3: an error with data and unknown members", instead: `{"jsonrpc":"2.0","id":{id},"error":` + RawError + `}`},
	"errorstring":   {what: "section 3: an error whose code is a string", instead: `{"jsonrpc":"2.0","id":{id},"error":{"code":"E","message":1}}`},
	"rawresult":     {what: "a result whose bytes must survive: big numbers, unknown members and blocks"},
	"hangsonprobe":  {what: "never answers server/discover"},
	"diesonprobe":   {what: "ends at server/discover"},
	"errorsonprobe": {what: "answers server/discover with an error of its own invention"},
	"oldversion":    {what: "answers initialize with 2024-11-05"},
	"badversion":    {what: "answers initialize with a version nobody knows"},
	"refuses":       {what: "answers initialize with an error"},
}

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
	if modes[mode].what == "" {
		fmt.Fprintln(os.Stderr, "modes:", strings.Join(slices.Sorted(maps.Keys(modes)), " "))
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

// say writes a line of the mode's, if it has one there.
func (s *server) say(line, id string) {
	if line != "" {
		n, _ := strconv.ParseInt(id, 10, 64)
		s.line(strings.NewReplacer("{id}", id, "{next}", strconv.FormatInt(n+1, 10)).Replace(line))
	}
}

// reply answers, with the mode's fault before or after it.
func (s *server) reply(id, result string) {
	m := modes[s.mode]
	s.say(m.before, id)
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
	s.say(m.after, id)
}

func (s *server) call(m message) (code int, end bool) {
	id := string(m.ID)
	text := func(t string) string {
		b, _ := json.Marshal(t)
		return `{"content":[{"type":"text","text":` + string(b) + `}]}`
	}
	if instead := modes[s.mode].instead; instead != "" {
		s.say(instead, id)
		return
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
		s.line(map[string]string{
			"asks":    `{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`,
			"elicits": `{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}}`,
		}[s.mode])
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
