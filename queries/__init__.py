"""Questions about models, a file for each; `mmaformal` has the functions that ask them."""

from mmaformal import renamed

renamed.modules(__name__, product_bound="bound", prove_encodings="verify")
