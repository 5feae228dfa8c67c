"""Machine code is made of a compiled function where somebody asks for its address, and not before.

Numba makes it of every function, also of one that only others call; those take its intermediate code into their own. It
optimises a parallel loop four times, and makes machine code of it each time: for the loop, two wrappers and the function around
them, of which the last alone is ever run. Here the wrappers are optimised as a part of that function, which comes out the same
in three quarters of the time.
"""

from typing import Any

import numba
from numba.core import codegen, environment, registry

TRIED = "0.68."  # begins the version of Numba whose inner works this knows; any other is left to do as it does
ENVIRONMENT = "_ZN08NumbaEnv"  # begins the name of what points to all that a function needs of Python
LOOP = "__numba_parfor_gufunc"  # is in the names of what Numba makes of a parallel loop
WRAPPER = "gufuncwrapper"  # of what it puts around one


class Library(codegen.JITCodeLibrary):
    """The code of one function and of all that it calls: intermediate code until an address is asked for."""

    _made = False

    @property
    def _wraps(self) -> bool:
        return WRAPPER in self.name.lower()

    def _optimize_final_module(self) -> None:
        if not self._wraps:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Numba: the intermediate code is complete. What comes from the cache may be machine code already."""
        self._finalized = True
        if self._disable_inspection:
            self._make()

    def _make(self) -> None:
        """Make the machine code, unless it is there."""
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
        """The address of one of these functions; 0 where there is none of this name, as of one that Python does not call."""
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
        """As the cache keeps it."""
        kept: tuple[Any, ...] = super().serialize_using_object_code() if self._made else self.serialize_using_bitcode()
        return kept


def on_demand() -> None:
    """From now on Numba makes the machine code of this process so, if it is the version that this was tried with."""
    if not numba.__version__.startswith(TRIED):
        return
    generator = registry.cpu_target.target_context.codegen()
    generator._library_class, set_env = Library, generator.set_env

    def set_if_there(name: str, environment: Any) -> None:
        if generator._engine.is_symbol_defined(name):  # of functions without machine code it is not: `_make` sets it
            set_env(name, environment)

    generator.set_env = set_if_there
