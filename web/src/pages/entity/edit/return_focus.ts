import { useEffect, useRef, type RefObject } from "react";

/** A button, and a function that moves the focus to it once it is drawn. */
export function useReturnFocus(): [RefObject<HTMLButtonElement | null>, () => void] {
  const button = useRef<HTMLButtonElement>(null);
  const wanted = useRef(false);
  // After each drawing, because the button may replace a form in a later one.
  useEffect(() => {
    if (!wanted.current || !button.current) return;
    wanted.current = false;
    button.current.focus();
  });
  return [button, () => { wanted.current = true; }];
}
