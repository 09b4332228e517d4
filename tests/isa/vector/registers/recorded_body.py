"""A vector function's body as a front end records it, for tests of what is made of it."""

import numpy as np

from cubecore.dtypes import element_type
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import Entries

FLOAT, WIDTH = element_type("float32"), element_type("uint32")
WHERE = Location("kernel.cpp", 1, "body")
BYTES = 256


class Body:
    """A body as a front end records it; values are numbers."""

    def __init__(self):
        self.table, self.lines, self.rows, self.values = {}, {}, [], 0

    def call(self, name, line, mode="", sources=(), mask=0, address=0, scalar=0, dtype=FLOAT):
        operation = operations()[name]
        call = self.table.setdefault(Call(operation, dtype, dtype, mode), len(self.table))
        place = self.lines.setdefault(line, len(self.lines))
        made = 0
        if not name.startswith("Store"):
            self.values += 1
            made = self.values
        sources = (*sources, 0, 0, 0)[:3]
        self.rows.append((call, place, (made, 0), sources, mask, address, scalar))
        return made

    def load(self, line, address):
        return self.call("LoadAlign", line, "NORM", address=address)

    def store(self, line, value, address, mask=0):
        self.call("StoreAlign", line, "NORM", sources=(value,), mask=mask, address=address)

    def count(self, line, lanes):
        return self.call("UpdateMask", line, scalar=lanes, dtype=WIDTH)

    def program(self):
        columns = [np.array(column) for column in zip(*self.rows, strict=True)]
        calls, places, results, sources, masks, addresses, scalars = columns
        locations = tuple(Location("kernel.cpp", line, "body") for line in self.lines)
        unsigned = [column.astype(np.uint32) for column in (results, sources, masks)]
        entries = Entries(
            tuple(self.table),
            locations,
            calls,
            places,
            *unsigned,
            np.zeros(len(self.rows), np.uint32),
            addresses.astype(np.int64),
            scalars.astype(np.uint64),
        )
        return RegisterProgram(entries, WHERE)

    def lanes_by_steps(self, image):
        """Run the calls one after another on lanes of float: the oracle."""
        image, values = image.copy(), {}
        names = [call.operation.name for call in self.table]
        for call, _, (made, _), sources, mask, address, scalar in self.rows:
            name, part = names[call], slice(address // 4, address // 4 + 64)
            on = values[mask] if mask else np.ones(64, bool)
            if name == "LoadAlign":
                values[made] = image[part].copy()
            elif name == "StoreAlign":
                image[part] = np.where(on, values[sources[0]], image[part])
            elif name == "UpdateMask":
                values[made] = np.arange(64) < scalar
            else:
                x, y = (values[n] for n in sources[:2])
                values[made] = np.where(on, x + y if name == "Add" else np.maximum(x, y), 0)
        return image
