"""When the stages of a step run, a floor under engine, readouts and PVM: it knows no model, no readout and no rank."""
