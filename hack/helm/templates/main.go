// Command templates renders templates as Helm does, one after another: the test of crates/helm compares random ones with it.
//
// Each line of the input is a request in JSON, each line of the output its answer. The request {"names": true} asks for the
// functions that templates have.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// The file that holds the template.
const file = "templates/t.yaml"

type request struct {
	Template string         `json:"template"`
	Values   map[string]any `json:"values"`
	Names    bool           `json:"names"`
}

type answer struct {
	Output *string  `json:"output,omitempty"`
	Error  string   `json:"error,omitempty"`
	Names  []string `json:"names,omitempty"`
}

func main() {
	log.SetOutput(io.Discard)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(input io.Reader, output io.Writer) error {
	requests := json.NewDecoder(bufio.NewReader(input))
	out := bufio.NewWriter(output)
	answers := json.NewEncoder(out)
	answers.SetEscapeHTML(false)
	for {
		var asked request
		if err := requests.Decode(&asked); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(reply(asked)); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func reply(asked request) answer {
	if asked.Names {
		var names []string
		for name := range sprig.TxtFuncMap() {
			names = append(names, name)
		}
		return answer{Names: names}
	}
	made, err := render(asked)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Output: &made}
}

func render(asked request) (string, error) {
	one := &chart.Chart{
		Metadata:  &chart.Metadata{Name: "c", Version: "1.0.0", APIVersion: chart.APIVersionV2},
		Templates: []*chart.File{{Name: file, Data: []byte(asked.Template)}},
	}
	made, err := engine.Render(one, chartutil.Values{"Values": asked.Values})
	return made["c/"+file], err
}
