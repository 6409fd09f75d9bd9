"""The turn costs that a model-F predictor takes, in seconds."""

from __future__ import annotations

from modelf.cells import StepCosts
from modelf.costs import COSTS, Vector
from modelf.first_principles import step_costs, turn_costs
from modelf.hardware import GPUS, MODELS
from registry.design import RunId
from registry.errors import RegistrationError
from registry.predictor import Predictor
from registry.registration import Registration


def predictor_costs(registration: Registration, predictor: Predictor, run: RunId) -> Vector:
    """c_k of a turn that misses, shape (max_turns,), seconds.

    `fitted`: the paper's cell, scaled so that its lambda_ref is the frozen
    one. `step-costs`: the cell's own constants. `first-principles`: the
    model's shape and the GPU's data. RegistrationError where the cell has none.
    """
    cell, workload = registration.cell_of(run), registration.draft.design.workload
    if predictor.costs == "fitted":
        fitted = COSTS.get(cell.name)
        if fitted is None or registration.calibration is None:
            raise _no_costs(registration, predictor, f"fitted: {', '.join(COSTS)}")
        scale = fitted.lambda_ref() / registration.calibration.lambda_ref_per_s
        return fitted.turn_costs(workload) * scale
    return turn_costs(predictor_step_costs(registration, predictor, run), workload, cell.pool_tokens).all_miss_s


def predictor_step_costs(registration: Registration, predictor: Predictor, run: RunId) -> StepCosts:
    """The step costs that a predictor takes: the cell's own (`step-costs`), or
    those of the model's shape and the GPU's data. RegistrationError where the
    cell has none.
    """
    cell = registration.cell_of(run)
    if predictor.costs == "step-costs":
        if cell.step_costs is None:
            raise _no_costs(registration, predictor, "a cell with step_costs")
        return cell.step_costs
    if cell.model not in MODELS or cell.gpu not in GPUS:
        raise _no_costs(registration, predictor, f"models {', '.join(MODELS)}; GPUs {', '.join(GPUS)}")
    return step_costs(MODELS[cell.model], GPUS[cell.gpu])


def _no_costs(registration: Registration, predictor: Predictor, known: str) -> RegistrationError:
    where = f"{registration.tag} {predictor.name}"
    what = f"no {predictor.costs or 'first-principles'} costs for cell {registration.cell.name}"
    return RegistrationError(what, where=where, remedy=f"known: {known}")
