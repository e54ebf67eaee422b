package memory

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/writ-project/writ/internal/strictyaml"
)

//go:embed data.yaml
var dataFile []byte

// data are the names and sentences that seeds draw from; data.yaml says what each is.
var data = func() (out struct {
	Lists     strictyaml.Map[[]string] `yaml:"lists"`
	Values    map[string]string        `yaml:"values"`
	Questions []question               `yaml:"questions"`
	Topics    []topic                  `yaml:"topics"`
	Heaps     []topic                  `yaml:"heaps"`
	Whose     clauses                  `yaml:"whose"`
	Traps     []struct {
		How    string `yaml:"how"`
		Form   string `yaml:"form"`
		Clause string `yaml:"clause"`
	} `yaml:"traps"`
}) {
	r := strictyaml.New("data.yaml")
	if !r.Read(dataFile, "", &out) {
		panic(r.Faults()[0].String())
	}
	return out
}()

// list is a list of data.yaml.
func list(name string) []string {
	for _, e := range data.Lists.Entries {
		if e.Key.Value == name {
			return e.Value
		}
	}
	panic("data.yaml: no list " + name)
}

// oneOf draws a member of a list.
func oneOf(d *draw, name string) string { return pick(d, list(name)) }

// question is one attribute of a subject, and what its values look like.
type question struct {
	Words string `yaml:"words"`
	Value string `yaml:"value"`
}

var blank = regexp.MustCompile(`\{(?:([a-z_]+)|([\d,]+)\.\.([\d,]+)(?:/(\d+))?)\}`)

// value draws a value of a kind.
func value(d *draw, kind string) string {
	text := blank.ReplaceAllStringFunc(data.Values[kind], func(b string) string {
		m := blank.FindStringSubmatch(b)
		if m[1] != "" {
			return oneOf(d, m[1])
		}
		number := func(s string) int { n, _ := strconv.Atoi(strings.ReplaceAll(s, ",", "")); return n }
		from, step := number(m[2]), max(1, number(m[4]))
		n := fmt.Sprintf("%0*d", len(m[2]), from+step*d.n((number(m[3])-from)/step+1))
		if strings.Contains(m[2], ",") {
			n = n[1:len(n)-3] + "," + n[len(n)-3:]
		}
		return n
	})
	if kind == "mail" {
		return strings.ToLower(text)
	}
	return text
}

// topic is something a person may tell of himself; of a heap, several times.
type topic struct {
	Details []string `yaml:"details"`
	Told    []string `yaml:"told"`
	Asked   string   `yaml:"asked"`
	When    string   `yaml:"when"`
	Hinted  string   `yaml:"hinted"`
	Beside  []string `yaml:"beside"`
}
