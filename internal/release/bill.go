package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// The parts of SPDX 2.3 that a bill of materials of a Go program has.
type (
	spdx struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      spdxCreation   `json:"creationInfo"`
		Packages      []spdxPackage  `json:"packages"`
		Relationships []spdxRelation `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID        string         `json:"SPDXID"`
		Name      string         `json:"name"`
		Version   string         `json:"versionInfo"`
		Location  string         `json:"downloadLocation"`
		Analyzed  bool           `json:"filesAnalyzed"`
		Concluded string         `json:"licenseConcluded"`
		Declared  string         `json:"licenseDeclared"`
		Copyright string         `json:"copyrightText"`
		Checksums []spdxChecksum `json:"checksums,omitempty"`
		Comment   string         `json:"comment,omitempty"`
		Refs      []spdxRef      `json:"externalRefs"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelation struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

var notOfAnID = regexp.MustCompile(`[^0-9A-Za-z.-]+`)

// bill is what a program is made of, read from the program itself.
func (r *release) bill(name, built string, exe []byte) ([]byte, error) {
	info, err := buildinfo.ReadFile(built)
	if err != nil {
		return nil, err
	}
	if info.Path != program {
		return nil, errors.New("it is another program")
	}
	const nobody = "NOASSERTION"
	sum := sha256.Sum256(exe)
	of := func(id, path, version string) spdxPackage {
		return spdxPackage{ID: "SPDXRef-" + notOfAnID.ReplaceAllString(id, "-"), Name: path, Version: version,
			Location: nobody, Concluded: nobody, Declared: nobody, Copyright: nobody,
			Refs: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}}}
	}
	own := of("program", info.Main.Path, r.version)
	own.Declared, own.Checksums = "Apache-2.0", []spdxChecksum{{"SHA256", hex.EncodeToString(sum[:])}}
	doc := spdx{Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://" + info.Main.Path + "/spdx/" + name + "-" + hex.EncodeToString(sum[:8]),
		Creation:  spdxCreation{r.at.Format(time.RFC3339), []string{"Tool: writ-release"}},
		Packages:  []spdxPackage{own},
	}
	doc.Relationships = []spdxRelation{{doc.ID, "DESCRIBES", own.ID}}
	add := func(p spdxPackage) {
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, spdxRelation{own.ID, "DEPENDS_ON", p.ID})
	}
	add(of("stdlib", "stdlib", info.GoVersion))
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced", m.Path)
		}
		p := of("module-"+m.Path, m.Path, m.Version)
		p.Location, p.Comment = "https://proxy.golang.org/"+m.Path+"/@v/"+m.Version+".zip", "go.sum "+m.Sum
		add(p)
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	return append(out, '\n'), err
}
