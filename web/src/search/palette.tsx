export function SearchPalette({ close }: { close: () => void }) {
  return <dialog open onClose={close} />;
}
