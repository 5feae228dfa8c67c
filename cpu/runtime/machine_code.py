"""Machine code is generated only for compiled functions whose address is requested.

Numba generates it for every function, even one that only other functions call; those link its intermediate code. It optimises a
parallel loop four times and generates machine code each time: for the loop, two wrappers and the enclosing function. Only the
last is ever run. Here the wrappers are optimised as a part of that function, with the same result in three quarters of the
time.
"""

from typing import Any

import numba
from numba.core import codegen, environment, registry

TRIED = "0.68."  # prefix of the supported Numba versions, whose internals this patches; others are left unchanged
ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the symbol that points to a function's Python environment
LOOP = "__numba_parfor_gufunc"  # part of the names that Numba gives to a parallel loop's functions
WRAPPER = "gufuncwrapper"  # part of the names of its wrappers


class Library(codegen.JITCodeLibrary):
    """The code of one function and its callees: intermediate code until an address is requested."""

    _made = False

    @property
    def _wraps(self) -> bool:
        return WRAPPER in self.name.lower()

    def _optimize_final_module(self) -> None:
        if not self._wraps:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Marks the intermediate code as complete; code from the cache may be machine code already."""
        self._finalized = True
        if self._disable_inspection:
            self._make()

    def _make(self) -> None:
        """Generates the machine code, unless it exists."""
        if self._made:
            return
        self._made = True
        if self._wraps:
            super()._optimize_final_module()
        super()._finalize_final_module()
        for variable in self._final_module.global_variables:
            if variable.name.startswith(ENVIRONMENT):
                known = environment.lookup_environment(variable.name)
                if known is not None:
                    self._codegen.set_env(variable.name, known)

    def get_pointer_to_function(self, name: str) -> Any:
        """Returns the address of one of these functions; 0 if none has this name, as for one that Python does not call."""
        self._ensure_finalized()
        if not self._made:
            if LOOP in name or not self._defines(name):
                return 0
            self._make()
        return super().get_pointer_to_function(name)

    def _defines(self, name: str) -> bool:
        try:
            return not self.get_function(name).is_declaration
        except NameError:
            return False

    def serialize_using_object_code(self) -> tuple[Any, ...]:
        """Returns the form for the cache."""
        return super().serialize_using_object_code() if self._made else self.serialize_using_bitcode()


def on_demand() -> None:
    """Makes Numba generate machine code on demand in this process, if its version is supported."""
    if not numba.__version__.startswith(TRIED):
        return
    generator = registry.cpu_target.target_context.codegen()
    generator._library_class, set_env = Library, generator.set_env

    def set_if_there(name: str, environment: Any) -> None:
        if generator._engine.is_symbol_defined(name):  # else it has no machine code yet: `_make` sets it
            set_env(name, environment)

    generator.set_env = set_if_there
