"""Programs of the fuzzer's, reduced, whose rounds both change a container in place and bind its name to another."""

# ruff: noqa: RUF005  (a list that is added to another is what this is about)

from __future__ import annotations

from tests.fuzz.test_found import assert_faithful, assert_never_wrong, weighed


def test_rounds_append_to_a_list_and_then_make_a_new_one():
    """Seed 401, 177: after the loop, the name held the list from before it, which only the first round fills."""

    def forward(self, x, y, c, n):
        out = []
        k = 0
        while True:
            k += 1
            if k >= n:
                break
            done = False
            j = 0
            while not done:
                j += 1
                done = j >= 4 or bool(done)
                out.append(y)
                out = [-y]
        return weighed(out)

    assert_faithful(forward)


def test_rounds_append_to_a_list_and_a_loop_in_them_adds_to_a_copy():
    """Seed 401, 65."""

    def forward(self, x, y, c, n):
        out = []
        for row in x.unbind(0):
            for _ in range(2):
                out.append(-y)
                k = 0
                while k < 2 and row.sum() <= 0.5:
                    k += 1
                    out = out + [y]
        return weighed(out)

    assert_faithful(forward)


def test_rounds_read_a_list_between_appending_to_it_and_adding_to_a_copy():
    def forward(self, x, y, c, n):
        out = []
        total = y.sum() * 0
        for row in x:
            out.append(row)
            total = total + weighed(out)
            if row.sum() > 0:
                out = out + [y]
        return weighed(out), total

    assert_faithful(forward)


def test_rounds_append_to_the_list_of_an_attribute_and_then_set_the_attribute():
    """It was looked for among the names: StopIteration."""

    def forward(self, x, y, c, n):
        self.items = [y]
        held = {"a": [y]}
        for row in x:
            self.items.append(row)
            self.items = self.items + [y * 2]
            held["a"].append(row)
            held["a"] = held["a"] + [y]
        return weighed(self.items), weighed(held["a"])

    assert_faithful(forward)


def test_the_first_list_is_used_under_another_name():
    """Only the first round, if there is one, puts something into it."""

    def forward(self, x, y, c, n):
        out = [y]
        first = out
        for row in x:
            out.append(row)
            out = out + [y]
        return weighed(out), weighed(first)

    assert_never_wrong(forward)


def test_the_length_of_the_first_list_is_asked_for():
    def forward(self, x, y, c, n):
        out = [y]
        first = out
        for row in x:
            out.append(row)
            out = out + [y]
        return weighed(out), y * len(first)

    assert_never_wrong(forward)


def test_the_first_list_is_the_callers():
    def forward(self, x, y, c, n):
        def with_rows(out):
            for row in x:
                out.append(row)
                out = out + [y]
            return out

        items = [y]
        return weighed(with_rows(items)), weighed(items)

    assert_never_wrong(forward)


def test_the_first_dict_is_used_under_another_name():
    def forward(self, x, y, c, n):
        held = {"a": y, "b": y * 2}
        first = held
        for row in x:
            held["a"] = row + held["b"]
            held = {"a": held["b"], "b": held["a"]}
        return held["a"], held["b"], first["a"]

    assert_never_wrong(forward)


def test_rounds_change_a_list_and_bind_its_name_to_another_from_before_the_loop():
    """From the second round on, it is `other` that is changed."""

    def forward(self, x, y, c, n):
        out, other = [y], [y * 2]
        for row in x:
            out[0] = row
            out = other
        return weighed(out), weighed(other)

    assert_never_wrong(forward)


def test_a_name_follows_a_list_that_rounds_fill():
    """It held what the list held before the loop."""

    def forward(self, x, y, c, n):
        out, filled = [y], [y]
        for row in x:
            filled.append(row)
            out = filled
            last = filled
        return weighed(out), weighed(filled), weighed(last) if x.shape[0] > 0 else y.sum()

    assert_faithful(forward)


def test_two_names_of_the_list_that_the_last_round_made():
    """One of them is not read before it is bound anew. The rows of the other were not made: LookupError."""

    def forward(self, x, y, c, n):
        one, two = [y], [y]
        for row in x:
            one.append(row)
            one = one + [y]
            two = one
        return weighed(one), weighed(two)

    assert_faithful(forward)


def test_two_names_of_the_list_that_the_last_round_made_and_both_are_used():
    def forward(self, x, y, c, n):
        one, two = [y], [y]
        total = y.sum() * 0
        for row in x:
            one.append(row)
            total = total + weighed(two)
            one = one + [y]
            two = one
        return weighed(one), total

    assert_never_wrong(forward)


def test_rounds_change_the_list_that_they_put_into_another():
    def forward(self, x, y, c, n):
        beams = []
        beam = [y]
        for row in x:
            beam[0] = row + beam[0]
            beams.append(beam)
        return sum(each[0].sum() * (i + 1) for i, each in enumerate(beams))

    assert_never_wrong(forward)


def test_rounds_make_a_dict_with_its_keys_in_another_order():
    """The values were taken one by one, whatever their keys: WRONG."""

    def forward(self, x, y, c, n):
        held = {"a": y, "b": y * 2}
        for row in x:
            held = {"b": held["a"] + row, "a": held["b"]}
        return held["a"], held["b"]

    assert_never_wrong(forward)


def test_a_list_that_a_loop_left_under_two_names_is_changed_after_it():
    def forward(self, x, y, c, n):
        one, two = [y], [y]
        for row in x:
            one = [row, row, y]
            two = one
        one.append(y)
        return weighed(one), weighed(two)

    assert_never_wrong(forward)


def test_the_list_that_a_loop_binds_another_name_to_is_changed_after_it():
    def forward(self, x, y, c, n):
        out, other = [y], [y, y]
        for _ in x:
            out = other
        out.append(y * 3)
        return weighed(out), weighed(other)

    assert_never_wrong(forward)


def test_a_list_that_a_loop_left_is_changed_after_it_and_nobody_else_holds_it():
    def forward(self, x, y, c, n):
        out = [y]
        for row in x:
            out = out + [row]
        out.append(y * 3)
        return weighed(out)

    assert_faithful(forward)


def test_one_arm_has_a_loop_that_appends_to_a_list_and_adds_to_a_copy():
    def forward(self, x, y, c, n):
        out = [y]
        if y.sum() > 0:
            for row in x:
                out.append(row)
                out = out + [y]
        return weighed(out)

    assert_faithful(forward)


def test_the_loop_over_a_generator_gives_a_list_another_one_and_leaves():
    """The list was gone through, item by item, where only its name had changed: refused without need."""

    def above(rows, least):
        for row in rows:
            if row.sum() > least:
                yield row
            yield row.clamp(-1, 1)

    def forward(self, x, y, c, n):
        out, k = [], 0
        while True:
            k += 1
            if k >= n:
                break
            for row in above(x, 0.5):
                out = out + [row]
                return weighed(out)
        return weighed(out)

    assert_faithful(forward)


def test_rounds_give_a_name_a_list_of_what_they_wrote():
    """The list held what the tensor was before the round: WRONG."""

    def forward(self, x, y, c, n):
        h = y
        out = []
        held = {"a": out}
        k = 0
        while k < c:
            k += 1
            h -= 1
            out = [y]
            held["a"] = [h, y]
        return weighed(out), weighed(held["a"]), h

    assert_faithful(forward)


def test_a_list_holds_a_tensor_that_rounds_write_while_they_put_others_before_it():
    """Seed 7006, 250: as rows, the list held a copy of the tensor as it was before the loop: WRONG."""

    def forward(self, x, y, c, n):
        h = y * 1
        out = [h]
        for row in x:
            h -= row.sign()
            out.insert(0, row)
        return weighed(out)

    assert_never_wrong(forward)


def test_one_arm_writes_what_it_put_into_a_new_list_and_the_other_appends():
    """Seed 7007, 24: the item was made anew outside the arm that had made it: a fault of ours."""

    def forward(self, x, y, c, n):
        out = []
        if n > 2:
            out = out + [y * 2]
            out[0].sub_(1)
        else:
            for row in x:
                out.append(row)
        return weighed(out)

    assert_faithful(forward)


def test_a_list_read_in_the_loop_that_holds_what_rounds_write():
    """Seed 9101, 44: the list held a copy of `self.last`, which every round writes: WRONG in the next round."""

    def forward(self, x, y, c, n):
        out = []
        for t in range(len(x)):
            out.append(sum(out, self.last).clamp(-9, 9))
            out.extend([self.last, x[t]])
            if (y == -1).any():
                continue
            self.last[1] += 1
        return sum(v.sum() * (j + 1) for j, v in enumerate(out))

    assert_never_wrong(forward)
