"""Configurations of recordings: files of the two originals, whose values are strings."""

# Every rate begins or changes within the frames that are learned.
A = {
    "autoencoder": "0",
    "context_exclude_self": "0",
    "delay_each_layer_learning": "5",
    "delay_intermediate_learning_rate": "24",
    "intermediate_learning_rate": "0.01",
    "delay_final_learning_rate": "36",
    "final_learning_rate": "0.005",
    "initial_learning_rate": "0.02",
    "momentum": "0.3",
    "fan_in_radius": "2",
    "fan_in_square_size": "2",
    "feed_context_in_complex_layer": "0",
    "hidden_block_size": "3",
    "input_block_size": "2",
    "last_layer_context_to_all": "1",
    "lateral_radius": "2",
    "layer_shapes": ["4", "3", "2", "1"],
    "polynomial": "1",
    "send_context_two_layers_back": "1",
}
B = A | {
    "context_exclude_self": "1",
    "last_layer_context_to_all": "0",
    "lateral_radius": "1",
    "layer_shapes": ["4", "2", "1"],
    "polynomial": "0",
    "send_context_two_layers_back": "0",
}
C = A | {"feed_context_in_complex_layer": "1", "layer_shapes": ["3", "2", "1"]}
D = A | {"hidden_block_size": "2", "input_block_size": "3", "layer_shapes": ["5", "3", "1"], "polynomial": "0"}
CUDA = {"A": A, "B": B, "C": C, "D": D}
# The rates and switches here are far beyond the frames of a recording, which brings its own.
OFF = """
    autoencoder backpropagate_readout_error bias_free bias_free_readout context_exclude_self disable_feedback disable_lateral
    feed_context_in_complex_layer normalize_output only_one_channel predict_two_steps reverse save_source_files
    send_context_two_layers_back stereo supervised use_global_backprop use_t_minus_2_block version_minor
"""
ON = """
    last_layer_context_to_all lateral_radius polynomial readout_depth use_derivative use_error use_integral version_major
"""
E = dict.fromkeys(OFF.split(), "0") | dict.fromkeys(ON.split(), "1")
E |= {
    "dataset": "short",
    "delay_each_layer_learning": "100000",
    "delay_final_learning_rate": "100000",
    "enable_feedback_at": "900000",
    "enable_lateral_at": "900000",
    "enable_readout": ["1", "1", "1", "1"],
    "ex_module": "PVM_models.PVM_unit_v1",
    "fan_in_radius": "2",
    "fan_in_square_size": "2",
    "final_learning_rate": "0.0001",
    "hidden_block_size": "3",
    "initial_learning_rate": "0.0003",
    "input_block_size": "2",
    "layer_shapes": ["4", "3", "2", "1"],
    "model_type": "small",
    "momentum": "0.5",
    "new_name": "",
    "readout_block_size": ["1", "1", "2", "4"],
    "steps": "100000000",
    "supervised_rate": "0.0002",
    "tau": "0.98",
    "unit_type": "simple",
}
F = E | {
    "normalize_output": "1",
    "predict_two_steps": "1",
    "use_derivative": "0",
    "use_error": "0",
    "use_integral": "0",
    "use_t_minus_2_block": "1",
}
G = F | {  # all features in two steps, other wiring
    "context_exclude_self": "1",
    "lateral_radius": "1.5",
    "use_derivative": "1",
    "use_error": "1",
    "use_integral": "1",
}
CLASSIC = {"E": E, "F": F, "G": G}
