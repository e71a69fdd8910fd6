// Command templates renders templates as Helm does, one after another: the test of crates/helm compares random ones with it.
//
// Each line of the input is a request in JSON, each line of the output its answer. The request {"names": true} asks for the
// functions that templates have. A template that takes too long or too much memory is answered with {"stopped": true}; the
// program ends then, as nothing else stops it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/metrics"
	"time"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// The file that holds the template.
const file = "templates/t.yaml"

// What a template may take.
const (
	longest = 5 * time.Second
	most    = 1 << 30
)

type request struct {
	Template string         `json:"template"`
	Values   map[string]any `json:"values"`
	Names    bool           `json:"names"`
}

type answer struct {
	Output *string  `json:"output,omitempty"`
	Error  string   `json:"error,omitempty"`
	Names  []string `json:"names,omitempty"`
	// Whether the template took more than it may.
	Stopped bool `json:"stopped,omitempty"`
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
		made := bounded(asked)
		if err := answers.Encode(made); err != nil {
			return err
		}
		if err := out.Flush(); err != nil || made.Stopped {
			return err
		}
	}
}

func bounded(asked request) answer {
	done := make(chan answer, 1)
	go func() { done <- reply(asked) }()
	end := time.After(longest)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case made := <-done:
			return made
		case <-end:
			return answer{Stopped: true}
		case <-look.C:
			if held() > most {
				return answer{Stopped: true}
			}
		}
	}
}

// How many bytes the program holds.
func held() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
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
