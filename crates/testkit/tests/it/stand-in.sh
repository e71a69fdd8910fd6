#!/bin/sh
# Plays a controller: says what it was started with, and ends when it is told to.
trap 'echo "{\"msg\": \"ended\"}"; exit 0' TERM
echo "no JSON"
echo "{\"msg\": \"started\", \"flags\": \"$*\", \"kubeconfig\": \"$KUBECONFIG\", \"namespace\": \"$RUNTIME_NAMESPACE\"}"
while [ "$ENDS" != yes ]; do sleep 0.02; done
exit 3
