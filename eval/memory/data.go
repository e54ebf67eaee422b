package memory

import (
	_ "embed"

	"github.com/writ-project/writ/internal/strictyaml"
)

//go:embed data.yaml
var dataFile []byte

// data are the names and sentences that seeds draw from; data.yaml says what each is.
var data = func() (out struct {
	FirstNames  []string `yaml:"first_names"`
	LastNames   []string `yaml:"last_names"`
	FirmNames   []string `yaml:"firm_names"`
	FirmTrades  []string `yaml:"firm_trades"`
	FirmForms   []string `yaml:"firm_forms"`
	ToolNames   []string `yaml:"tool_names"`
	Projects    []string `yaml:"projects"`
	Cities      []string `yaml:"cities"`
	Streets     []string `yaml:"streets"`
	Ways        []string `yaml:"ways"`
	Allergies   []string `yaml:"allergies"`
	HouseTools  []string `yaml:"house_tools"`
	UserForms   []string `yaml:"user_forms"`
	SelfForms   []string `yaml:"self_forms"`
	ApartForms  []string `yaml:"apart_forms"`
	RecordForms []string `yaml:"record_forms"`
	TextForms   []string `yaml:"text_forms"`
	BeforeIt    []string `yaml:"before_it"`
	AfterIt     []string `yaml:"after_it"`
	MailForms   []string `yaml:"mail_forms"`
	SmallTalk   []string `yaml:"small_talk"`
	Topics      []topic  `yaml:"topics"`
	Heaps       []topic  `yaml:"heaps"`
	Traps       []struct {
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

// topic is something a person may tell of himself; of a heap, several times.
type topic struct {
	Details []string `yaml:"details"`
	Told    []string `yaml:"told"`
	Asked   string   `yaml:"asked"`
	When    string   `yaml:"when"`
	Hinted  string   `yaml:"hinted"`
	Beside  []string `yaml:"beside"`
}
