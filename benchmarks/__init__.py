"""Commands that measure trueport against its peers. Nothing in `src` imports this folder."""
